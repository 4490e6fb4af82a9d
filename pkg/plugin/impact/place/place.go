package place

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// element stands in a Place for any element of a list.
const element = "[]"

// Place is a path without the keys of list elements: spec, containers, [], image.
type Place []string

// Of is the place of a path.
func Of(p fieldpath.Path) Place {
	out := make(Place, len(p))
	for i := range p {
		out[i] = element
		if p[i].FieldName != nil {
			out[i] = *p[i].FieldName
		}
	}
	return out
}

// At reads a place as tables write it: "spec.containers.[].image".
func At(text string) Place { return strings.Split(text, ".") }

// Within tells whether the place is another one, or below it.
func (p Place) Within(q Place) bool { return len(p) >= len(q) && slices.Equal(p[:len(q)], q) }

// Meets tells whether one of the places is the other, or holds it.
func (p Place) Meets(q Place) bool { return p.Within(q) || q.Within(p) }
