package pattern

import (
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// matcher is a compiled part of a pattern.
type matcher interface {
	// match compares a value; a difference goes to why, unless that is nil.
	match(c *limit.Clock, value any, at place, why *Difference) verdict
}

// verdict keeps what Kyverno keeps in its error types: a failed condition
// leaves a list element out, any other mismatch fails the whole list.
type verdict int

const (
	matched verdict = iota
	leftOut
	mismatched
	stopped // by the clock
)

func verdictOf(ok bool) verdict {
	if ok {
		return matched
	}
	return mismatched
}

// place is where in an object a map stands, because only the keys of labels
// and annotations may hold wildcards.
type place int

const (
	anywhere place = iota
	inMetadata
	inLabels
)

func (p place) child(key string) place {
	switch {
	case key == "metadata":
		return inMetadata
	case p == inMetadata && (key == "labels" || key == "annotations"):
		return inLabels
	default:
		return anywhere
	}
}

// nothing matches no value.
type nothing struct{ want any }

func (m nothing) match(_ *limit.Clock, value any, _ place, why *Difference) verdict {
	return why.whole(m.want, value)
}

// mapMatcher matches maps.
type mapMatcher struct {
	want any
	keys []keyMatcher // in the order in which they are checked
}

func (m *mapMatcher) match(c *limit.Clock, value any, at place, why *Difference) verdict {
	object, ok := value.(map[string]any)
	if !ok {
		return why.whole(m.want, value)
	}
	for i := range m.keys {
		if got := m.keys[i].match(c, object, at, why); got != matched {
			return got
		}
	}
	return matched
}

// keyMatcher matches a key of a map.
type keyMatcher struct {
	anchor   Anchor
	name     string // as objects have it
	want     any
	anything bool // any value but null will do
	value    matcher
	rank     int // among the keys of its map
}

func (k *keyMatcher) match(c *limit.Clock, object map[string]any, at place, why *Difference) verdict {
	if c.Step() != nil {
		return stopped
	}
	got, present := k.lookup(object, at)
	verdict := k.decide(c, field{got, present, at.child(k.name)}, why)
	if verdict == matched || verdict == stopped || why == nil {
		return verdict
	}
	switch {
	case k.anchor == Negation || k.anchor == Existence:
		*why = Difference{Path: k.name, Anchor: k.anchor, Want: k.want, Got: got}
	case got == nil:
		*why = Difference{Path: k.name, Want: k.want, Missing: true}
	default:
		*why = why.Below(k.name)
	}
	return verdict
}

// field is what an object has for a key.
type field struct {
	value   any
	present bool
	at      place
}

func (k *keyMatcher) decide(c *limit.Clock, got field, why *Difference) verdict {
	switch k.anchor {
	case Condition, Global:
		if !got.present {
			return conditional(k.anchor == Global)
		}
		verdict := k.value.match(c, got.value, got.at, why)
		if verdict == mismatched {
			return leftOut
		}
		return verdict
	case Equality, Existence:
		if !got.present {
			return matched
		}
	case Negation:
		return verdictOf(!got.present)
	}
	if k.anything {
		return verdictOf(got.value != nil)
	}
	return k.value.match(c, got.value, got.at, why)
}

func conditional(ok bool) verdict {
	if ok {
		return matched
	}
	return leftOut
}

// lookup finds the key; in labels and annotations a key with wildcards stands for
// the first one that it matches.
func (k *keyMatcher) lookup(object map[string]any, at place) (any, bool) {
	if at == inLabels && selector.HasWildcard(k.name) {
		for _, actual := range slices.Sorted(maps.Keys(object)) {
			if selector.MatchWildcard(k.name, actual) {
				return object[actual], true
			}
		}
	}
	got, ok := object[k.name]
	return got, ok
}

// someElements asks for one element of a list for each of the patterns.
type someElements []matcher

func (m someElements) match(c *limit.Clock, value any, _ place, _ *Difference) verdict {
	list, ok := value.([]any)
	if !ok {
		return mismatched
	}
	for _, pattern := range m {
		if got := anyElement(c, pattern, list); got != matched {
			return got
		}
	}
	return matched
}

func anyElement(c *limit.Clock, pattern matcher, list []any) verdict {
	for _, element := range list {
		if got := pattern.match(c, element, anywhere, nil); got == matched || got == stopped {
			return got
		}
	}
	return mismatched
}

// everyElement asks every map of a list, except for those whose own conditions fail.
type everyElement struct {
	want    any
	element matcher
}

func (m *everyElement) match(c *limit.Clock, value any, _ place, why *Difference) verdict {
	list, ok := value.([]any)
	if !ok {
		return why.whole(m.want, value)
	}
	return matchElements(c, list, func(int) matcher { return m.element }, why)
}

// pairs matches lists of lists element by element.
type pairs struct {
	want     any
	elements []matcher
}

func (m *pairs) match(c *limit.Clock, value any, _ place, why *Difference) verdict {
	list, ok := value.([]any)
	if !ok || len(list) < len(m.elements) {
		return why.whole(m.want, value)
	}
	return matchElements(c, list[:len(m.elements)], func(i int) matcher { return m.elements[i] }, why)
}

// matchElements fails on the first element that does not match. If all of them
// are left out, so is the list, and the first one is the difference.
func matchElements(c *limit.Clock, list []any, pattern func(int) matcher, why *Difference) verdict {
	asked, first := 0, Difference{}
	for i, element := range list {
		switch pattern(i).match(c, element, anywhere, why) {
		case stopped:
			return stopped
		case mismatched:
			why.in(i)
			return mismatched
		case matched:
			asked++
		case leftOut:
			if why != nil && first.Path == "" {
				why.in(i)
				first = *why
			}
		}
	}
	if asked > 0 || len(list) == 0 {
		return matched
	}
	if why != nil {
		*why = first
	}
	return leftOut
}

// everyScalar asks every element of a list for the same scalar.
type everyScalar struct {
	want    any
	element scalarMatcher
}

func (m *everyScalar) match(c *limit.Clock, value any, _ place, why *Difference) verdict {
	list, ok := value.([]any)
	if !ok {
		return why.whole(m.want, value)
	}
	return m.element.matchEach(c, list, why)
}

// scalarMatcher matches a scalar, or every element of a list.
type scalarMatcher struct {
	want   any
	scalar scalar
}

func (m *scalarMatcher) match(c *limit.Clock, value any, _ place, why *Difference) verdict {
	if list, ok := value.([]any); ok {
		return m.matchEach(c, list, why)
	}
	if m.scalar.holds(value) {
		return matched
	}
	return why.whole(m.want, value)
}

func (m *scalarMatcher) matchEach(c *limit.Clock, list []any, why *Difference) verdict {
	for i, element := range list {
		if c.Step() != nil {
			return stopped
		}
		if !m.scalar.holds(element) {
			why.whole(m.want, element)
			why.in(i)
			return mismatched
		}
	}
	return matched
}
