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

// namedElements are the names of the elements of a list, with how many have each.
type namedElements struct {
	keys   []string
	length int
	counts map[elementID]int
}

// reused is how long a list of fields may be of which the memory serves the next step.
const reused = 10_000

// NewSteps returns what compares the steps of a draft.
func NewSteps(d *engine.Draft) *Steps { return &Steps{draft: d, named: map[*any]namedElements{}} }

// Compare is Compare for one step, whose second state may have maps of the first that were changed
// in place. It ends when it has found so many fields; zero stands for all.
func (s *Steps) Compare(before, after map[string]any, t Type, enough int) []engine.FieldChange {
	c := comparison{draft: s.draft, steps: s, fields: s.fields[:0], enough: enough}
	c.maps(nil, before, after, t)
	if len(c.fields) > reused {
		s.fields = nil
		return c.fields
	}
	s.fields = c.fields
	return slices.Clone(c.fields)
}

// take returns how many elements of a list have each name, if that is known, and forgets it.
func (s *Steps) take(n naming, list []any) (counts map[elementID]int, known bool) {
	if s == nil || len(list) == 0 {
		return nil, false
	}
	e := s.named[&list[0]]
	if e.length != len(list) || !slices.Equal(e.keys, n.keys) {
		return nil, false
	}
	delete(s.named, &list[0])
	return e.counts, true
}

func (s *Steps) keep(n naming, list []any, counts map[elementID]int) {
	if s != nil && len(list) > 0 {
		s.named[&list[0]] = namedElements{n.keys, len(list), counts}
	}
}
