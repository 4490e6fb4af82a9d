package diff

import (
	"cmp"
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
// differences are, cannot be divided: it comes whole.
func Subset(from, to map[string]any, wanted, others []engine.FieldChange) map[string]any {
	return NewDifferences(from, to, others).Subset(wanted)
}

// Differences are those between two objects, of which each Subset makes some. To divide them among many
// takes what there is once, and each Subset only what its part takes. It is not safe for concurrent use.
type Differences struct {
	from, to map[string]any
	root     *node
}

// NewDifferences returns the differences that Compare found between two objects, which must not be modified as
// long as they are used. Those that a Subset wants need not be among them.
func NewDifferences(from, to map[string]any, fields ...[]engine.FieldChange) *Differences {
	d := &Differences{from, to, &node{}}
	for _, some := range fields {
		for i := range some {
			d.root.at(some[i].Path).differ()
		}
	}
	return d
}

// Subset is like the function Subset, for what is wanted of the differences.
func (d *Differences) Subset(wanted []engine.FieldChange) map[string]any {
	for i := range wanted {
		d.root.at(wanted[i].Path).want(&wanted[i])
	}
	object, _ := d.root.make(content{d.from, true}, content{d.to, true}).v.(map[string]any)
	d.root.forget()
	return object
}

// node is a place of the objects at or below which they differ.
type node struct {
	parent  *node
	element fieldpath.PathElement
	below   []*node
	index   map[string]*node // of those below, by their elements, once they are many
	differs bool             // here, and not only below
	count   int              // of the differences here and below
	pair    *listPair        // of two lists that are here, once they were compared

	here   *engine.FieldChange // the difference here, if it is wanted
	wanted int                 // of the differences here and below
	chosen []*node             // those below where some are wanted
}

// maxScanned is how many nodes are looked for one by one.
const maxScanned = 16

// at is the node of a path below n.
func (n *node) at(path fieldpath.Path) *node {
	for _, e := range path {
		n = n.child(e)
	}
	return n
}

// differ counts a difference here.
func (n *node) differ() {
	if n.differs {
		return
	}
	n.differs = true
	for ; n != nil; n = n.parent {
		n.count++
	}
}

// want chooses the difference here.
func (n *node) want(f *engine.FieldChange) {
	n.differ()
	known := n.here != nil
	if n.here = f; known {
		return
	}
	for ; n != nil; n = n.parent {
		if n.wanted == 0 && n.parent != nil {
			n.parent.chosen = append(n.parent.chosen, n)
		}
		n.wanted++
	}
}

// forget chooses nothing here and below.
func (n *node) forget() {
	for _, c := range n.chosen {
		c.forget()
	}
	n.here, n.wanted, n.chosen = nil, 0, n.chosen[:0]
}

func (n *node) child(e fieldpath.PathElement) *node {
	if c := n.find(e); c != nil {
		return c
	}
	c := &node{parent: n, element: e}
	n.below = append(n.below, c)
	n.pair = nil
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
func (n *node) divided() bool { return n.wanted < n.count }

// make is what stands at the place of the node in the result.
func (n *node) make(from, to content) content {
	switch {
	case n.wanted == 0:
		return from
	case n.here != nil && len(n.below) == 0:
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
	for _, c := range n.chosen {
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
	content
}

// listPair is two lists, and where the elements that differ stand in them.
type listPair struct {
	slots  []slot         // of the elements of the first, in its order; nil where they have no keys
	places map[*node]slot // of those that differ, without what they are
}

// makeList makes the differences between two lists whose elements have keys; false
// where they have none.
func (n *node) makeList(from, to []any) ([]any, bool) {
	if n.pair == nil {
		n.pair = n.paired(from, to)
	}
	if n.pair.places == nil {
		return nil, false
	}
	slots, moved := slices.Clone(n.pair.slots), false
	for _, c := range n.chosen {
		s := n.pair.places[c]
		s.content = c.make(contentAt(from, s.from), contentAt(to, s.to))
		if moved = moved || c.here != nil && c.here.Kind == engine.Moved; s.from >= 0 {
			slots[s.from] = s
		} else {
			slots = append(slots, s)
		}
	}
	slots = slices.DeleteFunc(slots, func(s slot) bool { return !s.ok })
	base, other := func(s slot) int { return s.from }, func(s slot) int { return s.to }
	if moved {
		base, other = other, base
	}
	out := make([]any, 0, len(slots))
	for _, s := range arranged(slots, base, other) {
		out = append(out, s.v)
	}
	return out, true
}

// arranged returns slots in the order of one list. What is not in it follows what stands next before it in the other one.
func arranged(slots []slot, base, other func(slot) int) []slot {
	alien := slices.DeleteFunc(slices.Clone(slots), func(s slot) bool { return base(s) >= 0 })
	slots = slices.DeleteFunc(slots, func(s slot) bool { return base(s) < 0 })
	slices.SortFunc(slots, func(a, b slot) int { return cmp.Compare(base(a), base(b)) })
	if len(alien) == 0 {
		return slots
	}
	byOther := func(a, b slot) int { return cmp.Compare(other(a), other(b)) }
	slices.SortFunc(alien, byOther)
	inOther := slices.SortedFunc(slices.Values(slots), byOther)
	followers, last := map[int][]slot{}, -1 // by the place of what they follow in the order of the list
	for _, s := range alien {
		for len(inOther) > 0 && other(inOther[0]) < other(s) {
			if other(inOther[0]) >= 0 {
				last = base(inOther[0])
			}
			inOther = inOther[1:]
		}
		followers[last] = append(followers[last], s)
	}
	out := followers[-1]
	for _, s := range slots {
		out = append(append(out, s), followers[base(s)]...)
	}
	return out
}

// paired finds the elements of two lists. Those that do not
// differ have kept their order, and so are found without a look at their keys.
func (n *node) paired(from, to []any) *listPair {
	places, slots := make(map[*node]slot, len(n.below)), make([]slot, len(from))
	inFrom, inTo := PointersIn(from), PointersIn(to)
	known, taken := make([]bool, len(from)), make([]bool, len(to))
	for _, c := range n.below {
		if c.element.FieldName != nil || c.element.Index != nil {
			return &listPair{}
		}
		s := slot{from: inFrom.index("", from, c.element), to: inTo.index("", to, c.element)}
		if s.from < 0 && s.to < 0 {
			return &listPair{}
		}
		places[c] = s
		if s.from >= 0 {
			slots[s.from], known[s.from] = s, true
		}
		if s.to >= 0 {
			taken[s.to] = true
		}
	}
	j := 0
	for i := range from {
		if !known[i] {
			for j < len(to) && taken[j] {
				j++
			}
			if j == len(to) {
				return &listPair{}
			}
			slots[i] = slot{from: i, to: j}
			j++
		}
		slots[i].content = contentAt(from, i)
	}
	if slices.Contains(taken[j:], false) {
		return &listPair{}
	}
	return &listPair{slots, places}
}

func contentAt(list []any, i int) content {
	if i < 0 {
		return content{}
	}
	return content{list[i], true}
}
