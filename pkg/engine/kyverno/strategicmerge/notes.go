package strategicmerge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// notes gathers what a merge does otherwise than Kyverno 1.19, or than the patch
// is written. The merge reports what it does; whether that deserves a warning is
// decided here.
type notes struct {
	warnings []engine.Warning
	unwanted bool
	// unlike is set where Kyverno 1.19 does something else that this package does not compute.
	unlike bool
}

// add notes that Kyverno 1.19 does something else.
func (n *notes) add(format string, args ...any) {
	n.unlike = true
	n.put(format, args...)
}

func (n *notes) put(format string, args ...any) {
	if n.unwanted {
		return
	}
	if w := engine.Warning(fmt.Sprintf(format, args...)); !slices.Contains(n.warnings, w) {
		n.warnings = append(n.warnings, w)
	}
}

// noteReplaced notes the loss of live elements of a list without merge keys.
func (m *merger) noteReplaced(live []any, written any, rule listRule, at *place) {
	n := &m.notes
	if n.unwanted || rule.known {
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
		n.put("%s: this list has no known merge key, so the patch replaces it as a whole, as Kyverno does; %d live elements differ or are gone", at, lost)
	}
}

// mergedByType notes a list whose keys come from the schema's list type alone.
func (n *notes) mergedByType(live, merged []any, patch []*node, at listAt) {
	if n.unwanted || len(live) == 0 || slices.EqualFunc(merged, patch, func(m any, p *node) bool { return diff.Same(m, p.value) }) {
		return
	}
	n.add("%s: the list merges by %s, as its schema says; Kyverno 1.19 would replace it as a whole", at, strings.Join(at.keys, " and "))
}

// noteNamed notes an element with anchors that spells out its name, if it would change
// an element with another name.
func (m *merger) noteNamed(patch *node, live []any, targets targets, at *place) {
	n := &m.notes
	if n.unwanted || len(targets.names) == 0 {
		return
	}
	for i := range live {
		trial := merger{notes: notes{unwanted: true}, clock: m.clock}
		object, ok := live[i].(map[string]any)
		if !ok || slices.Contains(targets.indices, i) || trial.check(patch, object, at.element(i)) != nil {
			continue
		}
		if merged, _ := trial.mergeMap(object, []*node{patch}, at.element(i)); trial.err == nil && !diff.Same(merged, object) {
			n.add("%s: an element of the patch that spells out its %s patches only the element with it; Kyverno 1.19 would patch every one whose conditions hold",
				at, strings.Join(targets.names, " and "))
			break
		}
	}
}

// several notes lists in which more than one element of the patch has anchors.
func (n *notes) several(patch []*node, sorted elements, at *place) {
	if n.unwanted || len(sorted.hits) == 0 {
		return
	}
	if anchored := slices.DeleteFunc(slices.Clone(patch), func(e *node) bool { return !e.anchored }); len(anchored) > 1 {
		n.add("%s: every element of the patch with anchors patches the elements that meet it; Kyverno 1.19 would lose elements, or fields of them, when there are several", at)
	}
}

// patched notes where Kyverno 1.19 is known not to change an element, or the list
// around it, as the policy is written.
func (n *notes) patched(patches []*node, live map[string]any, at *place) {
	if n.unwanted || !slices.ContainsFunc(patches, (*node).isAnchored) {
		return
	}
	switch {
	case slices.ContainsFunc(patches, func(p *node) bool { return p.global }):
		n.add("%s: fields beside a <() are written to the elements that meet it; Kyverno 1.19 would ignore them", at)
	case live["name"] == nil:
		n.add("%s: the elements have no name, and are patched anyway; Kyverno 1.19 would not change them", at)
	case !at.listRule().merge || len(at.listRule().keys) == 0:
		n.add("%s: this list has no known merge key, and only the fields of the patch are written; Kyverno 1.19 would replace the list by the patched fields", at)
	}
}
