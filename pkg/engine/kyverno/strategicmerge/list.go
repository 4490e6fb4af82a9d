package strategicmerge

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// mergeList merges the lists that patches hold for one field.
func (m *merger) mergeList(live []any, values []any, at *place) (value any, drop bool, err error) {
	var patch []any
	for _, v := range values {
		patch = append(patch, v.([]any)...)
	}
	patch, directive := takeDirective(patch)
	switch {
	case directive == directiveDelete:
		return nil, true, nil
	case directive == directiveReplace:
		value, err = m.contentList(slices.DeleteFunc(patch, hasAnchors), at)
		return value, false, err
	case len(patch) == 0:
		return live, live == nil, nil
	}
	if kindOf(patch[0]) != isMap {
		if i := slices.IndexFunc(live, isAMap); i >= 0 && len(at.listRule().keys) > 0 {
			return nil, false, &KindError{Path: at.element(i).String(), Patch: kindOf(patch[0]).String(), Got: isMap.String()}
		}
		last, _ := values[len(values)-1].([]any)
		value, err = m.mergeScalars(live, patch, last, at)
		return value, false, err
	}
	return m.mergeElements(live, patch, at)
}

// takeDirective splits off an element that holds nothing but a $patch, which
// speaks for the whole list.
func takeDirective(patch []any) ([]any, string) {
	directive := ""
	rest := slices.DeleteFunc(slices.Clone(patch), func(element any) bool {
		d, only := listDirective(element)
		if only {
			directive = d
		}
		return only
	})
	return rest, directive
}

func listDirective(element any) (directive string, only bool) {
	e, ok := element.(map[string]any)
	if !ok || len(e) != 1 {
		return "", false
	}
	directive, only = e[directiveKey].(string)
	return directive, only
}

// mergeScalars replaces a list of scalars, or adds to one that merges as a set
// (finalizers) what it lacks.
func (m *merger) mergeScalars(live, patch, last []any, at *place) (any, error) {
	if !at.listRule().merge {
		return m.contentList(last, at)
	}
	var added []any
	for _, v := range patch {
		if !contains(live, v) && !contains(added, v) {
			added = append(added, v)
		}
	}
	if len(added) == 0 {
		return live, nil
	}
	return append(added, live...), nil
}

// elements sorts the pattern elements of a list by what they are to do.
type elements struct {
	hits  map[int][]map[string]any // by the live element that they patch
	added []any
}

// mergeElements merges lists of maps.
func (m *merger) mergeElements(live, patch []any, at *place) (any, bool, error) {
	rule := at.listRule()
	if !rule.merge || len(rule.keys) == 0 {
		rule.keys = nil
		if !slices.ContainsFunc(patch, hasAnchors) {
			replaced, err := m.replaceElements(live, patch, rule, at)
			return replaced, false, err
		}
	}
	sorted := elements{hits: map[int][]map[string]any{}}
	for i, element := range patch {
		e, ok := element.(map[string]any)
		if !ok {
			return nil, false, &KindError{Path: at.element(i).String(), Patch: kindOf(element).String(), Got: isMap.String()}
		}
		if hasAnchors(e) {
			m.anchored(e, live, &sorted, listAt{at, rule.keys})
		} else if err := m.plain(e, live, &sorted, listAt{at, rule.keys}); err != nil {
			return nil, false, err
		}
	}
	if len(sorted.hits) > 0 && severalAnchored(patch) {
		m.warn("%s: every pattern element with anchors patches the elements that meet it; Kyverno 1.19 would lose elements, or fields of them, when there are several", at)
	}
	merged, err := m.patchElements(live, sorted, at)
	if err != nil {
		return nil, false, err
	}
	if rule.byType && len(live) > 0 && !slices.ContainsFunc(patch, hasAnchors) && !diff.Same(merged, patch) {
		m.warn("%s: the list merges by %s, as its schema says; Kyverno 1.19 would replace it as a whole", at, strings.Join(rule.keys, " and "))
	}
	return merged, live == nil && len(merged) == 0, nil
}

func isAMap(v any) bool { return kindOf(v) == isMap }

func severalAnchored(patch []any) bool {
	n := 0
	for _, element := range patch {
		if hasAnchors(element) {
			n++
		}
	}
	return n > 1
}

// replaceElements replaces a list that has no merge keys, as Kyverno does.
func (m *merger) replaceElements(live, patch []any, rule listRule, at *place) (any, error) {
	written, err := m.contentList(patch, at)
	if err != nil {
		return nil, err
	}
	replaced, _ := written.([]any)
	lost := 0
	for _, element := range live {
		if !contains(replaced, element) {
			lost++
		}
	}
	if lost > 0 && !rule.known {
		m.warn("%s: no merge key is known of this list, so the patch replaces it as a whole, as Kyverno does; %d live elements differ or are gone", at, lost)
	}
	return replaced, nil
}

// listAt is a list and its merge keys.
type listAt struct {
	*place
	keys []string
}

// anchored finds the live elements that a pattern element with anchors patches.
func (m *merger) anchored(e map[string]any, live []any, sorted *elements, at listAt) {
	targets, names := targetsOf(e, live, at.keys), namedBy(e, live, at.keys)
	patch := withoutNames(e, names)
	if len(names) > 0 && otherwiseHit(patch, live, targets, at.place) {
		m.warn("%s: a pattern element that spells out its %s patches only the element with it; Kyverno 1.19 would patch every one whose conditions hold",
			at, strings.Join(names, " and "))
	}
	adds := map[string]bool{}
	for _, t := range targets {
		if check(e, live[t], at.element(t)) == nil {
			sorted.hits[t] = append(sorted.hits[t], patch)
			adds[missingAdds(e, live[t])] = true
		}
	}
	if len(adds) > 1 {
		m.warn("%s: +() is judged on each element; Kyverno 1.19 would judge it on the first one for all", at)
	}
}

// missingAdds names the add anchors whose keys an element lacks.
func missingAdds(e map[string]any, live any) string {
	object, _ := live.(map[string]any)
	var missing strings.Builder
	for _, key := range sortedKeys(e) {
		anchor, plain := pattern.ParseKey(key)
		value, present := object[plain]
		if anchor == pattern.Add && !present {
			missing.WriteString(plain + ";")
		} else if child, ok := e[key].(map[string]any); ok && anchor != pattern.Add {
			missing.WriteString(plain + "{" + missingAdds(child, value) + "}")
		}
	}
	return missing.String()
}

// otherwiseHit tells whether the pattern element would change a live one that
// it does not name.
func otherwiseHit(patch map[string]any, live []any, targets []int, at *place) bool {
	for i := range live {
		object, ok := live[i].(map[string]any)
		if !ok || slices.Contains(targets, i) || check(patch, object, at.element(i)) != nil {
			continue
		}
		var trial merger
		if merged, _, err := trial.mergeMap(object, []map[string]any{patch}, at.element(i)); err == nil && !diff.Same(merged, object) {
			return true
		}
	}
	return false
}

// withoutNames leaves out what names the live element, since a patch does not
// rename what it found; nor does Kyverno.
func withoutNames(e map[string]any, names []string) map[string]any {
	if hasAnchored(e, "name") {
		names = append(names, "name")
	}
	if !slices.ContainsFunc(names, func(k string) bool { return e[k] != nil }) {
		return e
	}
	out := maps.Clone(e)
	for _, k := range names {
		delete(out, k)
	}
	return out
}

// plain finds the live element that a pattern element without anchors patches,
// or makes it a new one.
func (m *merger) plain(e map[string]any, live []any, sorted *elements, at listAt) error {
	if len(at.keys) == 0 { // beside anchored elements, in a list without keys
		written, err := m.contentMap(e, at.element(0))
		if err == nil && !isDeletion(e) && !contains(live, written) {
			sorted.added = append(sorted.added, written)
		}
		return err
	}
	if !slices.ContainsFunc(at.keys, func(k string) bool { return e[k] != nil }) {
		m.warn("%s: a pattern element without %s is left out, since it says neither which element it means nor that it means all of them, as (%s): \"*\" would; Kyverno 1.19 would empty the list",
			at, strings.Join(at.keys, " or "), at.keys[0])
		return nil
	}
	for _, k := range at.keys {
		if v, present := e[k]; present && kindOf(v) != isScalar {
			found := kindOf(v)
			return &KindError{Path: at.String() + "[]." + k, Patch: found.String(), Got: isScalar.String()}
		}
	}
	if i := find(e, live, at.keys); i >= 0 {
		sorted.hits[i] = append(sorted.hits[i], e)
		return nil
	}
	i := find(e, sorted.added, at.keys)
	switch {
	case i >= 0 && isDeletion(e):
		sorted.added = slices.Delete(sorted.added, i, i+1)
		return nil
	case isDeletion(e):
		return nil
	case i >= 0:
		merged, _, err := m.mergeMap(sorted.added[i].(map[string]any), []map[string]any{e}, at.element(i))
		sorted.added[i] = merged
		return err
	}
	written, err := m.contentMap(e, at.element(len(sorted.added)))
	if err != nil {
		return err
	}
	sorted.added = append(sorted.added, written)
	return nil
}

// find returns the first element with the pattern's merge keys, or -1. A
// missing protocol is TCP, as it is for the server; where that finds nothing,
// only the keys that the pattern spells out count, as in kustomize.
func find(e map[string]any, list []any, keys []string) int {
	for _, same := range [...]func(a, b map[string]any, keys []string) bool{sameDefaultedKeys, sameKeys} {
		for i, element := range list {
			if m, ok := element.(map[string]any); ok && same(e, m, keys) {
				return i
			}
		}
	}
	return -1
}

// sameKeys compares the keys that the pattern spells out.
func sameKeys(e, live map[string]any, keys []string) bool {
	for _, k := range keys {
		if e[k] != nil && !diff.Same(e[k], withDefault(live, k)) {
			return false
		}
	}
	return true
}

func sameDefaultedKeys(e, live map[string]any, keys []string) bool {
	for _, k := range keys {
		if !diff.Same(withDefault(e, k), withDefault(live, k)) {
			return false
		}
	}
	return true
}

func withDefault(m map[string]any, key string) any {
	if v := m[key]; v != nil || key != "protocol" {
		return v
	}
	return "TCP"
}

// patchElements writes what was sorted: new elements come first, as in Kyverno,
// and live ones keep their order.
func (m *merger) patchElements(live []any, sorted elements, at *place) ([]any, error) {
	out := append(make([]any, 0, len(sorted.added)+len(live)), sorted.added...)
	changed := len(sorted.added) > 0
	for i, element := range live {
		patches, hit := sorted.hits[i]
		if !hit {
			out = append(out, element)
			continue
		}
		old := element.(map[string]any)
		merged, removed, err := m.mergeMap(old, patches, at.element(i))
		if err != nil {
			return nil, err
		}
		if removed || !diff.Shared(merged, old) {
			changed = true
			m.tellDifference(patches, old, at)
		}
		if !removed {
			out = append(out, merged)
		}
	}
	if !changed {
		return live, nil
	}
	return out, nil
}

// tellDifference warns where Kyverno 1.19 is known not to change an element, or
// the list around it, in the way that the policy says.
func (m *merger) tellDifference(patches []map[string]any, live map[string]any, at *place) {
	if !slices.ContainsFunc(patches, func(p map[string]any) bool { return hasAnchors(p) }) {
		return
	}
	switch {
	case slices.ContainsFunc(patches, func(p map[string]any) bool { return hasGlobal(p) }):
		m.warn("%s: fields beside a <() are written to the elements that meet it; Kyverno 1.19 would ignore them", at)
	case live["name"] == nil:
		m.warn("%s: the elements have no name, and are patched all the same; Kyverno 1.19 would not change them", at)
	case !at.listRule().merge || len(at.listRule().keys) == 0:
		m.warn("%s: no merge key is known of this list, and only the fields of the patch are written; Kyverno 1.19 would replace the list by the patched fields", at)
	}
}

func hasGlobal(patch any) bool {
	switch p := patch.(type) {
	case map[string]any:
		for key, value := range p {
			if anchor, _ := pattern.ParseKey(key); anchor == pattern.Global || hasGlobal(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, hasGlobal)
	}
	return false
}
