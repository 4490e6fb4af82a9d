package diff

import (
	"cmp"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Subset returns from with only the wanted differences of to: neither the others, nor another spelling of an
// equivalent value, such as 1024Mi for 1Gi, or an empty list for none. Wanted and others together are the
// result of Compare for the two objects; a difference in both is wanted. Neither object is modified; the
// result refers to their values.
//
// A list without keys that has both wanted and other differences cannot be divided: it comes whole.
func Subset(from, to map[string]any, wanted, others []engine.FieldChange) map[string]any {
	root := &node{}
	for i := range others {
		root.descend(others[i].Path).other = true
	}
	for i := range wanted {
		root.descend(wanted[i].Path).here = &wanted[i]
	}
	object, _ := root.make(content{from, true}, content{to, true}).v.(map[string]any)
	return object
}

// node is a place at or below which the objects differ.
type node struct {
	element fieldpath.PathElement
	below   map[string]*node    // by their elements
	here    *engine.FieldChange // the difference here, if it is wanted
	other   bool                // there is a difference here, wanted or not
}

func (n *node) descend(path fieldpath.Path) *node {
	for _, e := range path {
		name := e.String()
		if n.below[name] == nil {
			if n.below == nil {
				n.below = map[string]*node{}
			}
			n.below[name] = &node{element: e}
		}
		n = n.below[name]
	}
	return n
}

// isWanted reports whether a difference here or below is wanted.
func (n *node) isWanted() bool {
	return n.here != nil || n.anyBelow((*node).isWanted)
}

// divided reports whether a difference here or below is not wanted.
func (n *node) divided() bool {
	return n.other && n.here == nil || n.anyBelow((*node).divided)
}

func (n *node) anyBelow(is func(*node) bool) bool {
	for _, c := range n.below {
		if is(c) {
			return true
		}
	}
	return false
}

// content is the value at a place, if any.
type content struct {
	v  any
	ok bool
}

// orEmpty returns the value, or an empty map or list where it is missing and the other object has one.
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

// make returns the content of the node in the result.
func (n *node) make(from, to content) content {
	switch {
	case !n.isWanted():
		return from
	case n.here != nil && len(n.below) == 0:
		return to
	case n.element.FieldName != nil && (from.v == nil) != (to.v == nil) && n.divided():
		// only a part of an addition or removal is wanted
		from, to = from.orEmpty(to), to.orEmpty(from)
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
		if c.element.FieldName == nil || !c.isWanted() {
			continue // an element of a list, not of a map
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

// slot is an element of the resulting list, with its index in each of the two lists, or -1.
type slot struct {
	from, to int
	content
}

// makeList makes the differences between two lists with keys; false for lists without.
func (n *node) makeList(from, to []any) ([]any, bool) {
	slots, places, ok := n.pair(from, to)
	if !ok {
		return nil, false
	}
	moved := false
	for c, s := range places {
		if !c.isWanted() {
			continue
		}
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

// arranged returns slots in the order of one list. A slot outside of it follows its predecessor in the other
// list.
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
	followers, last := map[int][]slot{}, -1 // by the index of their predecessor in the list
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

// pair finds the elements of two lists: all of the first, in its order, and the differing ones, without their
// content. The others have kept their order, and are found without their keys. It is not ok where elements
// have no keys.
func (n *node) pair(from, to []any) (slots []slot, places map[*node]slot, ok bool) {
	slots, places = make([]slot, len(from)), make(map[*node]slot, len(n.below))
	known, taken := make([]bool, len(from)), make([]bool, len(to))
	for _, c := range n.below {
		if c.element.FieldName != nil || c.element.Index != nil {
			return nil, nil, false
		}
		s := slot{from: Index(from, c.element), to: Index(to, c.element)}
		if s.from < 0 && s.to < 0 {
			return nil, nil, false
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
				return nil, nil, false
			}
			slots[i] = slot{from: i, to: j}
			j++
		}
		slots[i].content = contentAt(from, i)
	}
	return slots, places, !slices.Contains(taken[j:], false)
}

func contentAt(list []any, i int) content {
	if i < 0 {
		return content{}
	}
	return content{list[i], true}
}
