package patching

import (
	"cmp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

func (m *merger) mergeList(live []any, values []*node, at *place) (value any, drop bool) {
	var patch []*node
	directive := "" // the last one counts
	for _, v := range values {
		patch, directive = append(patch, v.elements...), cmp.Or(v.directive, directive)
	}
	switch {
	case directive == directiveDelete:
		m.nothingToDelete(live == nil, at)
		return nil, true
	case directive == directiveReplace:
		return m.contentList(slices.DeleteFunc(slices.Clone(patch), (*node).isAnchored), at), false
	case len(patch) == 0:
		return live, live == nil
	}
	if patch[0].kind != isMap {
		i := slices.IndexFunc(live, func(v any) bool { return kindOf(v) == isMap })
		if slices.ContainsFunc(patch, func(e *node) bool { return e.kind == isMap }) {
			i = 0
		}
		if i >= 0 && len(at.listRule().keys) > 0 {
			m.err = cmp.Or(m.err, kindError(at.element(i).String(), patch[0].kind, isMap))
			return live, false
		}
		return m.mergeScalars(live, patch, values[len(values)-1], at), false
	}
	return m.mergeElements(live, patch, at)
}

// mergeScalars replaces a list of scalars, or adds missing items to a set (finalizers).
func (m *merger) mergeScalars(live []any, patch []*node, last *node, at *place) any {
	if !at.listRule().merge {
		return m.contentList(last.elements, at)
	}
	var added []any
	for _, e := range patch {
		if !m.contains(live, e.value) && !m.contains(added, e.value) {
			added = append(added, e.value)
		}
	}
	if len(added) == 0 {
		return live
	}
	return slices.Concat(added, live)
}

// elements are a patch's elements by purpose.
type elements struct {
	hits  map[int][]*node // by the index of the live element
	added []any
}

func (m *merger) mergeElements(live []any, patch []*node, at *place) (any, bool) {
	rule := at.listRule()
	anchored := slices.ContainsFunc(patch, (*node).isAnchored)
	if len(rule.keys) == 0 && !anchored {
		replaced := m.contentList(patch, at)
		m.noteReplaced(live, replaced, rule, at)
		return replaced, false
	}
	sorted := elements{hits: map[int][]*node{}}
	for i, e := range patch {
		switch {
		case !m.steps(1 + len(live)):
			return live, false
		case e.kind != isMap:
			m.err = cmp.Or(m.err, kindError(at.element(i).String(), e.kind, isMap))
			return live, false
		case e.anchored:
			m.anchored(e, live, &sorted, at)
		default:
			m.mergePlain(e, live, &sorted, at)
		}
	}
	m.noteSeveral(patch, sorted, at)
	merged := m.patchElements(live, sorted, at)
	if rule.byType && !anchored {
		m.noteMergedByType(live, merged, patch, at)
	}
	return merged, live == nil && len(merged) == 0
}

// anchored finds the live elements for a patch element with anchors.
func (m *merger) anchored(e *node, live []any, sorted *elements, at *place) {
	once := m.findOnce(e, live, at)
	targets := selectTargets(e, live, at.listRule().keys)
	// they name the live element and are not written: a patch does not rename its target, in Kyverno neither
	keep := targets.names
	if e.hasAnchored("name") {
		keep = append(slices.Clip(keep), "name")
	}
	patch := e.without(keep)
	m.noteNamed(patch, live, targets, at)
	hit := false
	var missed []*ConditionError
	for _, t := range targets.indices {
		failed := m.check(e, live[t], at.element(t))
		if e.adds && m.differs(e, once, live[t], failed == nil, at.element(t)) {
			m.warn("%s: +() is judged on each element; Kyverno 1.19 would judge it on the first one for all", at)
		}
		switch {
		case failed == nil:
			hit = true
			sorted.hits[t] = append(sorted.hits[t], patch)
		case m.why != nil:
			missed = append(missed, failed)
		}
	}
	if !hit {
		m.missed(e, live, missed, targets, at)
	}
}

// mergePlain finds the live element for a patch element without anchors, or makes it a new one.
func (m *merger) mergePlain(e *node, live []any, sorted *elements, at *place) {
	keys := at.listRule().keys
	if len(keys) == 0 { // next to anchored elements, in a list without keys
		if written := m.contentMap(e, at.element(0)); !e.isDeletion() && !m.contains(live, written) {
			sorted.added = append(sorted.added, written)
		}
		return
	}
	if !slices.ContainsFunc(keys, func(k string) bool { return e.source[k] != nil }) {
		m.withoutKeys(at)
		return
	}
	for _, k := range keys {
		if v, present := e.source[k]; present && kindOf(v) != isScalar {
			m.err = cmp.Or(m.err, kindError(at.String()+"[]."+k, kindOf(v), isScalar))
			return
		}
	}
	if i := find(e.source, live, keys); i >= 0 {
		m.noteSomeKeys(e, live[i], at)
		sorted.hits[i] = append(sorted.hits[i], e)
		return
	}
	switch i := find(e.source, sorted.added, keys); {
	case i >= 0 && e.isDeletion():
		sorted.added = slices.Delete(sorted.added, i, i+1)
	case e.isDeletion():
		m.nothingNamed(e, at)
	case i >= 0:
		sorted.added[i], _ = m.mergeMap(sorted.added[i].(map[string]any), []*node{e}, at.element(i))
	default:
		sorted.added = append(sorted.added, m.contentMap(e, at.element(len(sorted.added))))
	}
}

// find returns the first element with the patch's merge keys, or -1. A missing protocol is TCP, as on the
// server; if nothing matches, only the written keys count, as in kustomize.
func find(e map[string]any, list []any, keys []string) int {
	for _, defaulted := range []bool{true, false} {
		if i := slices.IndexFunc(list,
			func(element any) bool { return sameKeys(e, element, keys, defaulted) }); i >= 0 {
			return i
		}
	}
	return -1
}

// sameKeys compares the written keys, or all keys with the server's defaults.
func sameKeys(e map[string]any, element any, keys []string, defaulted bool) bool {
	live, isMap := element.(map[string]any)
	return isMap && !slices.ContainsFunc(keys, func(k string) bool {
		want := e[k]
		if defaulted {
			want = withDefault(e, k)
		}
		return (defaulted || want != nil) && !diff.Same(want, withDefault(live, k))
	})
}

func withDefault(m map[string]any, key string) any {
	if v := m[key]; v != nil || key != "protocol" {
		return v
	}
	return "TCP"
}

// patchElements writes the sorted elements: new ones first, as in Kyverno, while live ones keep their order.
func (m *merger) patchElements(live []any, sorted elements, at *place) []any {
	out, changed := append(make([]any, 0, len(sorted.added)+len(live)), sorted.added...), len(sorted.added) > 0
	for i, element := range live {
		patches, hit := sorted.hits[i]
		if !hit {
			out = append(out, element)
			continue
		}
		old := element.(map[string]any)
		now, removed := m.mergeMap(old, patches, at.element(i))
		if removed || !diff.Shared(now, old) {
			changed = true
			m.notePatched(patches, old, at)
		}
		if !removed {
			out = append(out, now)
		}
	}
	if !changed {
		return live
	}
	return out
}
