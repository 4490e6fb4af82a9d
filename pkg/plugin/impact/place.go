package impact

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// element stands in a place for any element of a list.
const element = "[]"

// place is a path without the keys of list elements: spec, containers, [], image.
type place []string

// placeOf is the place of a path.
func placeOf(p fieldpath.Path) place {
	out := make(place, len(p))
	for i := range p {
		out[i] = element
		if p[i].FieldName != nil {
			out[i] = *p[i].FieldName
		}
	}
	return out
}

// placeAt reads a place as tables write it: "spec.containers.[].image".
func placeAt(text string) place { return strings.Split(text, ".") }

// within reports whether the place is another one, or below it.
func (p place) within(q place) bool { return len(p) >= len(q) && slices.Equal(p[:len(q)], q) }

// meets reports whether one of the places is the other, or holds it.
func (p place) meets(q place) bool { return p.within(q) || q.within(p) }

// placeSet is a set of places; nil is an empty one.
type placeSet struct {
	ends  bool // one of them ends here
	below map[string]*placeSet
}

// with returns the set with one more place.
func (s *placeSet) with(p place) *placeSet {
	if s == nil {
		s = &placeSet{}
	}
	at := s
	for _, name := range p {
		if at.below == nil {
			at.below = map[string]*placeSet{}
		}
		if at.below[name] == nil {
			at.below[name] = &placeSet{}
		}
		at = at.below[name]
	}
	at.ends = true
	return s
}

// meet reports whether any of the places meets p.
func (s *placeSet) meet(p place) bool {
	for _, name := range p {
		if s == nil || s.ends {
			break
		}
		s = s.below[name]
	}
	return s != nil
}

// holding returns an object that has nothing but a value at the place, below which there is a map: an element
// stands for the only one of its list.
func (p place) holding(fields map[string]any) map[string]any {
	var value any = fields
	for _, name := range slices.Backward(p) {
		if name == element {
			value = []any{value}
		} else {
			value = map[string]any{name: value}
		}
	}
	return value.(map[string]any)
}
