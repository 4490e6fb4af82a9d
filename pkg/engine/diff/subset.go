package diff

import (
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Subset returns from with the wanted differences made, and nothing else of to:
// neither the others, nor what is written in another way and means the same to
// the server, such as 1024Mi and 1Gi, or an empty list and none. Wanted and others
// together are what Compare found between the two objects; what is in both is wanted.
// Neither object is modified; the result refers to their values.
//
// A list whose elements have no keys, and in which both wanted and other
// differences are, cannot be divided: it comes whole. So does one in which there
// are so many that it would take too long.
func Subset(from, to map[string]any, wanted, others []engine.FieldChange) map[string]any {
	root := &node{}
	for i := range others {
		root.add(&others[i], false)
	}
	for i := range wanted {
		root.add(&wanted[i], true)
	}
	object, _ := root.make(content{from, true}, content{to, true}).v.(map[string]any)
	return object
}

// node is a place of the objects at or below which they differ.
type node struct {
	element fieldpath.PathElement
	field   *engine.FieldChange // the difference here; nil where there are only some below
	here    bool                // the difference here is wanted
	wanted  bool                // one here or below is
	below   []*node
	index   map[string]*node // of those below, by their elements, once they are many
}

// The bounds of what is looked for one by one.
const (
	maxScanned  = 16      // nodes
	maxCompared = 1 << 20 // elements of lists with differences
)

func (n *node) add(f *engine.FieldChange, wanted bool) {
	n.wanted = n.wanted || wanted
	for _, e := range f.Path {
		n = n.child(e)
		n.wanted = n.wanted || wanted
	}
	n.field, n.here = f, wanted
}

func (n *node) child(e fieldpath.PathElement) *node {
	if c := n.find(e); c != nil {
		return c
	}
	c := &node{element: e}
	n.below = append(n.below, c)
	if n.index != nil {
		n.index[e.String()] = c
	}
	return c
}

func (n *node) find(e fieldpath.PathElement) *node {
	if len(n.below) <= maxScanned {
		for _, c := range n.below {
			if c.element.Equals(e) {
				return c
			}
		}
		return nil
	}
	// Differences come in path order, so that it is mostly the last one.
	if last := n.below[len(n.below)-1]; last.element.Equals(e) {
		return last
	}
	if n.index == nil {
		n.index = map[string]*node{}
		for _, c := range n.below {
			n.index[c.element.String()] = c
		}
	}
	return n.index[e.String()]
}

// content is what stands at a place, if there is something.
type content struct {
	v  any
	ok bool
}

// orEmpty is what stands at a place, or an empty map or list where there is nothing, and the other object has one.
func (c content) orEmpty(other content) content {
	if c.v != nil {
		return c
	}
	switch other.v.(type) {
	case map[string]any:
		return content{map[string]any{}, true}
	case []any:
		return content{[]any{}, true}
	}
	return c
}

// divided reports whether a difference here or below is not wanted.
func (n *node) divided() bool {
	return n.field != nil && !n.here || slices.ContainsFunc(n.below, (*node).divided)
}

// make is what stands at the place of the node in the result.
func (n *node) make(from, to content) content {
	switch {
	case !n.wanted:
		return from
	case n.here && len(n.below) == 0:
		return to
	case n.element.FieldName != nil && (from.v == nil) != (to.v == nil) && n.divided():
		from, to = from.orEmpty(to), to.orEmpty(from) // of what is added or removed as a whole, only a part is wanted
	}
	switch a := from.v.(type) {
	case map[string]any:
		if b, ok := to.v.(map[string]any); ok {
			return content{n.makeMap(a, b), true}
		}
	case []any:
		if b, ok := to.v.([]any); ok {
			if out, ok := n.makeList(a, b); ok {
				return content{out, true}
			}
		}
	}
	return to
}

func (n *node) makeMap(from, to map[string]any) map[string]any {
	out := make(map[string]any, len(from))
	maps.Copy(out, from)
	for _, c := range n.below {
		if c.element.FieldName == nil {
			continue // of a list, which a map is not
		}
		name := *c.element.FieldName
		a, inFrom := from[name]
		b, inTo := to[name]
		if v := c.make(content{a, inFrom}, content{b, inTo}); v.ok {
			out[name] = v.v
		} else {
			delete(out, name)
		}
	}
	return out
}

// slot is an element of the resulting list, and where it stood in the two lists;
// -1 where it did not.
type slot struct {
	from, to int
	v        any
}

// makeList makes the differences between two lists whose elements have keys; false
// where they have none, or where there are too many.
func (n *node) makeList(from, to []any) ([]any, bool) {
	if len(n.below)*(len(from)+len(to)) > maxCompared {
		return nil, false
	}
	slots, moved, ok := n.slots(from, to)
	if !ok {
		return nil, false
	}
	base, other := func(s slot) int { return s.from }, func(s slot) int { return s.to }
	if moved {
		base, other = other, base
	}
	slices.SortStableFunc(slots, func(a, b slot) int { return base(a) - base(b) })
	alien := slices.IndexFunc(slots, func(s slot) bool { return base(s) >= 0 })
	if alien < 0 {
		alien = len(slots)
	}
	rest := slices.Clone(slots[:alien]) // not in the list whose order is kept
	slots = slices.Clone(slots[alien:])
	slices.SortStableFunc(rest, func(a, b slot) int { return other(a) - other(b) })
	for _, s := range rest {
		slots = slices.Insert(slots, behind(slots, other, other(s)), s)
	}
	out := make([]any, len(slots))
	for i, s := range slots {
		out[i] = s.v
	}
	return out, true
}

// behind is the place after what stands next before a place of a list.
func behind(slots []slot, place func(slot) int, at int) int {
	best, index := -1, 0
	for i, s := range slots {
		if p := place(s); p > best && p < at {
			best, index = p, i+1
		}
	}
	return index
}

// slots are the elements of the resulting list, in no order. Those that do not
// differ have kept their order, and so are found without a look at their keys.
func (n *node) slots(from, to []any) (out []slot, moved, ok bool) {
	inFrom, inTo := map[int]bool{}, map[int]bool{}
	for _, c := range n.below {
		a, b := Index(from, c.element), Index(to, c.element)
		if c.element.FieldName != nil || c.element.Index != nil || a < 0 && b < 0 {
			return nil, false, false
		}
		inFrom[a], inTo[b] = true, true
		moved = moved || c.here && c.field.Kind == engine.Moved
		if v := c.make(contentAt(from, a), contentAt(to, b)); v.ok {
			out = append(out, slot{a, b, v.v})
		}
	}
	j := 0
	for i, v := range from {
		if inFrom[i] {
			continue
		}
		for j < len(to) && inTo[j] {
			j++
		}
		if j == len(to) {
			return nil, false, false
		}
		out = append(out, slot{i, j, v})
		j++
	}
	for j < len(to) && inTo[j] {
		j++
	}
	return out, moved, j == len(to)
}

func contentAt(list []any, i int) content {
	if i < 0 {
		return content{}
	}
	return content{list[i], true}
}
