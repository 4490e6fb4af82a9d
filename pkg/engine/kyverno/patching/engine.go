package patching

import (
	"maps"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// InEngine returns Kyverno 1.19's result for an object, which is not modified, if it is known to differ from
// Apply's only by +() in the elements of lists, and whether it is known. Errors are as for Apply.
func (p *StrategicMerge) InEngine(c *limit.Clock, live map[string]any,
	l *Lists,
) (map[string]any, bool, error) {
	m := merger{clock: c, inEngine: true, found: found{}}
	object, removed, err := m.apply(p, live, l)
	return object, err == nil && !removed && !m.unlike, err
}

// found records whether the object has the +() fields of a patch element.
//
// Kyverno 1.19 looks once for all elements of a list: handleAddIfNotPresentAnchor in pkg/engine/mutate/patch
// edits the one copy of the patch element that processListOfMaps compares with each live one.
type found map[*node]bool

// present reports whether a +() field exists, and so is not written.
func (m *merger) present(f *node, live map[string]any) bool {
	if there, once := m.found[f]; once {
		return there
	}
	_, there := live[f.name]
	return there
}

// findOnce returns Kyverno 1.19's findings for the +() fields of a patch element, used to merge as Kyverno
// does.
func (m *merger) findOnce(e *node, live []any, at *place) found {
	if !e.adds || m.trial {
		return nil
	}
	out := found{}
	for i, element := range live {
		if !m.steps(1+len(e.fields)) || m.find(out, e, element, at.element(i)) {
			break // nothing is looked for after the first element that meets the conditions
		}
	}
	if m.inEngine {
		maps.Copy(m.found, out)
	}
	return out
}

// find looks for the remaining +() fields of a map, and reports whether its conditions hold. Like Kyverno, it
// leaves fields below unmet conditions to another element.
func (m *merger) find(out found, patch *node, live any, at *place) bool {
	object, _ := live.(map[string]any)
	out.look(patch, object)
	for _, c := range patch.conditions {
		if m.checkCondition(c, object, at) != nil {
			return false
		}
		if c.patches { // a patch, whose values are conditions for the following elements
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

// differs reports whether Kyverno 1.19, by its one lookup, patches an element differently than by the
// element's own fields; met says whether its conditions hold by that lookup.
func (m *merger) differs(e *node, once found, live any, met bool, at *place) bool {
	if met {
		return once.differ(e, live)
	}
	trial := merger{trial: true, clock: m.clock, found: once}
	return trial.check(e, live, at) == nil
}

// differ reports whether a map has other +() fields than found.
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
