package diff

import (
	"sort"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func (c *comparison) lists(p fieldpath.Path, a, b []any, t Type) {
	element := t.unknown()
	if l, ok := t.list(); ok {
		element = t.to(l.ElementType)
	}
	if ka, kb, ok := identify(a, b, t, element); ok {
		c.keyed(p, keyedList{a, ka}, keyedList{b, kb}, element)
		return
	}
	c.indexed(p, a, b, element)
}

// keyedList is a list and the path element that names each of its elements.
type keyedList struct {
	items []any
	keys  []fieldpath.PathElement
}

// positions maps each key's text to its index.
func (l keyedList) positions() map[string]int {
	out := make(map[string]int, len(l.keys))
	for i, k := range l.keys {
		out[k.String()] = i
	}
	return out
}

func (c *comparison) keyed(p fieldpath.Path, a, b keyedList, element Type) {
	inA, inB := a.positions(), b.positions()
	moved := movedBetween(a.keys, inB)
	for i, k := range a.keys {
		q := child(p, k)
		j, ok := inB[k.String()]
		if !ok {
			c.add(q, engine.Removed, a.items[i], nil)
			continue
		}
		if moved[k.String()] {
			c.add(q, engine.Moved, int64(i), int64(j))
		}
		c.values(q, a.items[i], b.items[j], element)
	}
	for j, k := range b.keys {
		if _, ok := inA[k.String()]; !ok {
			c.add(child(p, k), engine.Added, nil, b.items[j])
		}
	}
}

// movedBetween returns the elements, given in their old order, that changed their
// place among those that both lists hold: all but a longest run that kept its order,
// so that an element taken to the front is one move and not a move of all others.
func movedBetween(keys []fieldpath.PathElement, inB map[string]int) map[string]bool {
	var common []string
	for _, k := range keys {
		if _, ok := inB[k.String()]; ok {
			common = append(common, k.String())
		}
	}
	if sort.SliceIsSorted(common, func(i, j int) bool { return inB[common[i]] < inB[common[j]] }) {
		return nil
	}
	places := make([]int, len(common))
	for i, k := range common {
		places[i] = inB[k]
	}
	kept := longestIncreasing(places)
	moved := make(map[string]bool, len(common)-len(kept))
	for i, k := range common {
		if !kept[i] {
			moved[k] = true
		}
	}
	return moved
}

// longestIncreasing marks the indexes of a longest increasing subsequence of
// distinct numbers (patience sorting).
func longestIncreasing(n []int) map[int]bool {
	tails := []int{} // tails[l] is the index of the smallest end of a run of length l+1
	previous := make([]int, len(n))
	for i, v := range n {
		l := sort.Search(len(tails), func(l int) bool { return n[tails[l]] >= v })
		previous[i] = -1
		if l > 0 {
			previous[i] = tails[l-1]
		}
		if l == len(tails) {
			tails = append(tails, i)
		} else {
			tails[l] = i
		}
	}
	kept := make(map[int]bool, len(tails))
	for i := tails[len(tails)-1]; i >= 0; i = previous[i] {
		kept[i] = true
	}
	return kept
}

// indexed compares by place, after setting aside what the lists share at their
// two ends, so that an insertion is one added element.
func (c *comparison) indexed(p fieldpath.Path, a, b []any, element Type) {
	start := 0
	for start < len(a) && start < len(b) && Equal(a[start], b[start], element) {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && Equal(a[len(a)-1-end], b[len(b)-1-end], element) {
		end++
	}
	for i := start; i < max(len(a), len(b))-end; i++ {
		q := index(p, i)
		switch {
		case i >= len(a)-end:
			c.add(q, engine.Added, nil, b[i])
		case i >= len(b)-end:
			c.add(q, engine.Removed, a[i], nil)
		default:
			c.values(q, a[i], b[i], element)
		}
	}
}

// identify finds how to name the elements of both lists by more than their
// place: by the schema's list-map keys, as set values, or by a unique `name`.
func identify(a, b []any, t, element Type) (ka, kb []fieldpath.PathElement, ok bool) {
	key := func(v any) (fieldpath.PathElement, bool) { return byKeys(v, []string{"name"}, element) }
	if l, known := t.list(); known && l.ElementRelationship == schema.Associative {
		if len(l.Keys) == 0 {
			key = byValue
		} else {
			key = func(v any) (fieldpath.PathElement, bool) { return byKeys(v, l.Keys, element) }
		}
	}
	if ka, ok = nameAll(a, key); !ok {
		return nil, nil, false
	}
	kb, ok = nameAll(b, key)
	return ka, kb, ok
}

// nameAll names every element, or none: if an element has no key, or a key is not
// unique, the elements can only be named by their index.
func nameAll(items []any, key func(any) (fieldpath.PathElement, bool)) ([]fieldpath.PathElement, bool) {
	out := make([]fieldpath.PathElement, len(items))
	seen := make(map[string]bool, len(items))
	for i, v := range items {
		k, ok := key(v)
		if !ok || seen[k.String()] {
			return nil, false
		}
		seen[k.String()] = true
		out[i] = k
	}
	return out, true
}

func byValue(v any) (fieldpath.PathElement, bool) {
	switch v.(type) {
	case map[string]any, []any, nil:
		return fieldpath.PathElement{}, false
	}
	val := value.NewValueInterface(v)
	return fieldpath.PathElement{Value: &val}, true
}

func byKeys(v any, keys []string, element Type) (fieldpath.PathElement, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return fieldpath.PathElement{}, false
	}
	list := make(value.FieldList, 0, len(keys))
	for _, name := range keys {
		k, ok := m[name]
		if !ok {
			k = element.defaultOf(name)
		}
		if _, scalar := byValue(k); !scalar {
			return fieldpath.PathElement{}, false
		}
		list = append(list, value.Field{Name: name, Value: value.NewValueInterface(k)})
	}
	list.Sort()
	return fieldpath.PathElement{Key: &list}, true
}
