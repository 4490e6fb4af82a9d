package patching

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Deviations of a merge from Kyverno 1.19, or from the written patch. The merge reports what it does; this
// file decides about warnings.

// note warns of a deviation from Kyverno 1.19.
func (m *merger) note(format string, args ...any) {
	m.unlike = true
	m.warn(format, args...)
}

func (m *merger) warn(format string, args ...any) {
	if m.trial {
		return
	}
	if w := engine.Warning(fmt.Sprintf(format, args...)); !slices.Contains(m.warnings, w) {
		m.warnings = append(m.warnings, w)
	}
}

// noteReplaced notes lost live elements of a list without merge keys.
func (m *merger) noteReplaced(live []any, written any, rule listRule, at *place) {
	if m.trial || rule.known {
		return
	}
	replaced, _ := written.([]any)
	lost := 0
	for _, element := range live {
		if !m.contains(replaced, element) {
			lost++
		}
	}
	if lost > 0 {
		m.warn("%s: this list has no known merge key, so the patch replaces it as a whole, as Kyverno does; %d live elements differ or are gone", at, lost)
	}
}

// noteMergedByType notes a list whose keys come only from the schema's list type.
func (m *merger) noteMergedByType(live, merged []any, patch []*node, at *place) {
	if m.trial || len(live) == 0 ||
		slices.EqualFunc(merged, patch, func(e any, p *node) bool { return diff.Same(e, p.value) }) {
		return
	}
	m.note("%s: the list merges by %s, as its schema says; Kyverno 1.19 would replace it as a whole", at, strings.Join(at.listRule().keys, " and "))
}

// noteSomeKeys notes a patch element without some merge keys of the live one that it changes.
func (m *merger) noteSomeKeys(e *node, live any, at *place) {
	element, _ := live.(map[string]any)
	lacks := slices.DeleteFunc(slices.Clone(at.listRule().keys),
		func(k string) bool { return e.source[k] != nil || element[k] == nil })
	changes := false
	for name, v := range e.source {
		changes = changes || !diff.Same(v, element[name])
	}
	if len(lacks) > 0 && changes {
		m.note("%s: an element of the patch without %s patches the one with its other keys; Kyverno 1.19 would not change that", at, strings.Join(lacks, " and "))
	}
}

// noteNamed notes a patch element with anchors and a name that would change an element with another name.
func (m *merger) noteNamed(patch *node, live []any, targets targets, at *place) {
	if m.trial || len(targets.names) == 0 {
		return
	}
	for i := range live {
		trial := merger{trial: true, clock: m.clock}
		object, ok := live[i].(map[string]any)
		if !ok || slices.Contains(targets.indices, i) || trial.check(patch, object, at.element(i)) != nil {
			continue
		}
		if merged, _ := trial.mergeMap(object, []*node{patch}, at.element(i)); trial.err == nil &&
			!diff.Same(merged, object) {
			m.note("%s: an element of the patch that spells out its %s patches only the element with it; Kyverno 1.19 would patch every one whose conditions hold",
				at, strings.Join(targets.names, " and "))
			break
		}
	}
}

// noteSeveral notes lists with several anchored patch elements.
func (m *merger) noteSeveral(patch []*node, sorted elements, at *place) {
	if m.trial || len(sorted.hits) == 0 {
		return
	}
	if anchored := slices.DeleteFunc(slices.Clone(patch),
		func(e *node) bool { return !e.anchored }); len(anchored) > 1 {
		m.note("%s: every element of the patch with anchors patches the elements that meet it; Kyverno 1.19 would lose elements, or fields of them, when there are several", at)
	}
}

// notePatched notes an element that Kyverno 1.19 is known not to change as the policy is written, nor the
// list around it.
func (m *merger) notePatched(patches []*node, live map[string]any, at *place) {
	if m.trial || !slices.ContainsFunc(patches, (*node).isAnchored) {
		return
	}
	switch {
	case slices.ContainsFunc(patches, func(p *node) bool { return p.global }):
		m.note("%s: fields beside a <() are written to the elements that meet it; Kyverno 1.19 would ignore them", at)
	case live["name"] == nil:
		m.note("%s: the elements have no name, and are patched anyway; Kyverno 1.19 would not change them", at)
	case len(at.listRule().keys) == 0:
		m.note("%s: this list has no known merge key, and only the fields of the patch are written; Kyverno 1.19 would replace the list by the patched fields", at)
	}
}
