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

// meet reports whether any of several places meets p.
func meet(all []place, p place) bool { return slices.ContainsFunc(all, p.meets) }

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
