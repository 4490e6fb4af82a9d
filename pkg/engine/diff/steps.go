package diff

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Steps compares the states of an object that a draft changes step by step. It does not look at
// what a step has not touched, and remembers the names of the elements of lists, so that many
// steps that add to one list take linear time. It is for one object, and one goroutine.
type Steps struct {
	draft  *engine.Draft
	named  map[*any]namedElements // by the first element of the list that has them
	fields []engine.FieldChange   // of the last step; its memory serves the next one
}

// namedElements are the names of the elements of a list, of which each has another one.
type namedElements struct {
	keys   []string
	length int
	ids    map[elementID]int
}

// NewSteps returns what compares the steps of a draft.
func NewSteps(d *engine.Draft) *Steps { return &Steps{draft: d, named: map[*any]namedElements{}} }

// Compare is Compare for one step, whose second state may have maps of the first that were changed
// in place.
func (s *Steps) Compare(before, after map[string]any, t Type) []engine.FieldChange {
	c := comparison{draft: s.draft, steps: s, fields: s.fields[:0]}
	c.maps(nil, before, after, t)
	s.fields = c.fields
	return slices.Clone(c.fields)
}

// take returns the names of the elements of a list, and forgets them; nil where they are not known.
func (s *Steps) take(n naming, list []any) map[elementID]int {
	if s == nil || len(list) == 0 {
		return nil
	}
	e := s.named[&list[0]]
	if e.length != len(list) || !slices.Equal(e.keys, n.keys) {
		return nil
	}
	delete(s.named, &list[0])
	return e.ids
}

func (s *Steps) keep(n naming, list []any, ids map[elementID]int) {
	if s != nil && len(list) > 0 {
		s.named[&list[0]] = namedElements{n.keys, len(list), ids}
	}
}
