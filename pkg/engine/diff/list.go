package diff

import (
	"slices"
	"sort"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func (c *comparison) lists(p fieldpath.Path, a, b []any, t Type) {
	start, end := ends(a, b, Same)
	if start+end == max(len(a), len(b)) {
		return
	}
	n := namingOf(t)
	if old, now := n.nameAll(a), n.nameAll(b); old != nil && now != nil {
		c.keyed(p, n, old, now)
		return
	}
	c.indexed(p, a, b, n.element)
}

// ends counts the elements that are the same at the beginning and at the end of two lists.
func ends(a, b []any, same func(a, b any) bool) (start, end int) {
	n := min(len(a), len(b))
	for start < n && same(a[start], b[start]) {
		start++
	}
	for end < n-start && same(a[len(a)-1-end], b[len(b)-1-end]) {
		end++
	}
	return start, end
}

// keyedList is a list with a name for each element.
type keyedList struct {
	items  []any
	ids    []string
	places map[string]int // nil for few elements
}

// fewElements is the number of elements that are found as fast without a map.
const fewElements = 16

// place returns the index of a named element.
func (l *keyedList) place(id string) (int, bool) {
	if l.places != nil {
		i, known := l.places[id]
		return i, known
	}
	i := slices.Index(l.ids, id)
	return i, i >= 0
}

func (c *comparison) keyed(p fieldpath.Path, n naming, a, b *keyedList) {
	moved := movedBetween(a, b)
	for i, id := range a.ids {
		j, ok := b.place(id)
		if ok && !moved[id] && Same(a.items[i], b.items[j]) {
			continue // a path costs more than this
		}
		q := append(p, n.path(a.items[i]))
		if !ok {
			c.add(q, engine.Removed, a.items[i], nil)
			continue
		}
		if moved[id] {
			c.add(q, engine.Moved, int64(i), int64(j))
		}
		c.values(q, a.items[i], b.items[j], n.element)
	}
	for j, id := range b.ids {
		if _, ok := a.place(id); !ok {
			c.add(append(p, n.path(b.items[j])), engine.Added, nil, b.items[j])
		}
	}
}

// movedBetween returns the elements, in their old order, that changed their place among the elements of both
// lists: all but a longest run that kept its order, so that an element taken to the front is one move and not
// a move of all others.
func movedBetween(a, b *keyedList) map[string]bool {
	var common []string
	var places []int
	for _, id := range a.ids {
		if place, ok := b.place(id); ok {
			common, places = append(common, id), append(places, place)
		}
	}
	if sort.IntsAreSorted(places) {
		return nil
	}
	kept := longestIncreasing(places)
	moved := make(map[string]bool, len(common)-len(kept))
	for i, id := range common {
		if !kept[i] {
			moved[id] = true
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

// indexed compares by index, without the common elements at both ends, so that an insertion is one added
// element.
func (c *comparison) indexed(p fieldpath.Path, a, b []any, element Type) {
	start, end := ends(a, b, func(x, y any) bool { return Equal(x, y, element) })
	for i := start; i < max(len(a), len(b))-end; i++ {
		q := append(p, fieldpath.PathElement{Index: &i})
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

// naming names the elements of a list other than by index: by the schema's list-map keys, as set values, or
// by a unique `name`.
type naming struct {
	keys    []string // none for values of a set
	element Type
}

func namingOf(t Type) naming {
	if l, known := t.list(); known && l.ElementRelationship == schema.Associative {
		return naming{l.Keys, t.Element()}
	}
	return naming{[]string{"name"}, t.Element()}
}

// nameAll names the elements of a list; nil where names are missing or ambiguous, so that only an index is
// left.
func (n naming) nameAll(items []any) *keyedList {
	l := &keyedList{items: items, ids: make([]string, 0, len(items))}
	if len(items) > fewElements {
		l.places = make(map[string]int, len(items))
	}
	for i, v := range items {
		id, ok := n.id(v)
		if _, known := l.place(id); !ok || known {
			return nil
		}
		if l.ids = append(l.ids, id); l.places != nil {
			l.places[id] = i
		}
	}
	return l
}

// id names an element: usually by a single string, else by its path element.
func (n naming) id(v any) (string, bool) {
	only := v
	if len(n.keys) == 1 {
		m, _ := v.(map[string]any)
		only = m[n.keys[0]]
	}
	if text, ok := only.(string); ok && len(n.keys) <= 1 {
		return text, true
	}
	k, ok := n.pathElement(v)
	return "\x00" + k.String(), ok
}

// path returns the path element of a named element.
func (n naming) path(v any) fieldpath.PathElement {
	k, _ := n.pathElement(v)
	return k
}

func (n naming) pathElement(v any) (fieldpath.PathElement, bool) {
	if len(n.keys) == 0 {
		return byValue(v)
	}
	return byKeys(v, n.keys, n.element)
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
			k = element.DefaultOf(name)
		}
		if _, scalar := byValue(k); !scalar {
			return fieldpath.PathElement{}, false
		}
		list = append(list, value.Field{Name: name, Value: value.NewValueInterface(k)})
	}
	list.Sort()
	return fieldpath.PathElement{Key: &list}, true
}
