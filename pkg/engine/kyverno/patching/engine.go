package patching

import (
	"maps"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// InEngine returns what Kyverno 1.19 makes of an object, which stays as it is, where that is known to differ
// from what Apply makes of it only by its +() in the elements of lists, and whether it is known. The error is
// one of Apply.
func (p *StrategicMerge) InEngine(c *limit.Clock, live map[string]any,
	l *Lists,
) (map[string]any, bool, error) {
	m := merger{clock: c, inEngine: true, found: found{}}
	object, removed, err := m.apply(p, live, l)
	return object, err == nil && !removed && !m.unlike, err
}

// found says of the +() fields of an element of a patch whether the object has them.
//
// Kyverno 1.19 looks once for all elements of a list: handleAddIfNotPresentAnchor in
// pkg/engine/mutate/patch edits the one copy of the patch's element that processListOfMaps
// holds against each live one in turn.
type found map[*node]bool

// present reports whether a +() field is there already, and so is not written.
func (m *merger) present(f *node, live map[string]any) bool {
	if there, once := m.found[f]; once {
		return there
	}
	_, there := live[f.name]
	return there
}

// findOnce returns what Kyverno 1.19 finds for the +() fields of an element of a patch. Merging
// goes by it where it is to merge as Kyverno does.
func (m *merger) findOnce(e *node, live []any, at *place) found {
	if !e.adds || m.trial {
		return nil
	}
	out := found{}
	for i, element := range live {
		if !m.steps(1+len(e.fields)) || m.find(out, e, element, at.element(i)) {
			break // the first element that meets the conditions is the last one in which anything is looked for
		}
	}
	if m.inEngine {
		maps.Copy(m.found, out)
	}
	return out
}

// find looks for the +() fields of a map that were not looked for yet, and reports whether its
// conditions hold. It goes as far as Kyverno does: those below conditions that do not hold are
// looked for in another element.
func (m *merger) find(out found, patch *node, live any, at *place) bool {
	object, _ := live.(map[string]any)
	out.look(patch, object)
	for _, c := range patch.conditions {
		if m.checkCondition(c, object, at) != nil {
			return false
		}
		if c.patches { // a patch, whose values are conditions for the elements that follow
			below, _ := object[c.name].(map[string]any)
			out.look(c, below)
			m.unlike = true
		}
	}
	for _, f := range patch.fields {
		switch {
		case f.kind == isList && f.anchored:
			m.unlike = true
		case f.kind != isMap || f.anchor == pattern.Condition || f.anchor == pattern.Global || out[f]:
		case !m.find(out, f, object[f.name], at.field(f.name)):
			return false
		}
	}
	return true
}

// look looks for the +() fields of one map.
func (x found) look(patch *node, live map[string]any) {
	for _, f := range patch.fields {
		if _, known := x[f]; f.anchor == pattern.Add && !known {
			_, x[f] = live[f.name]
		}
	}
}

// differs reports whether Kyverno 1.19, by what it found once, patches an element otherwise than
// by what the element has; met says whether its conditions hold by that.
func (m *merger) differs(e *node, once found, live any, met bool, at *place) bool {
	if met {
		return once.differ(e, live)
	}
	trial := merger{trial: true, clock: m.clock, found: once}
	return trial.check(e, live, at) == nil
}

// differ reports whether a map has other +() fields than were found.
func (x found) differ(patch *node, live any) bool {
	object, _ := live.(map[string]any)
	for _, f := range patch.fields {
		value, there := object[f.name]
		if f.anchor == pattern.Add && there != x[f] ||
			f.anchor != pattern.Add && f.kind == isMap && x.differ(f, value) {
			return true
		}
	}
	return false
}
