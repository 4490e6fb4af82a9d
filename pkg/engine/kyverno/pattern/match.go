package pattern

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// verdict keeps what Kyverno keeps in its error types: a failed condition
// leaves a list element out, any other mismatch fails the whole list, as does the
// end of the rule's time.
type verdict int

const (
	matched verdict = iota
	leftOut
	mismatched
)

func verdictOf(ok bool) verdict {
	if ok {
		return matched
	}
	return mismatched
}

// below returns where a field of a map stands: only the keys of the labels and annotations of metadata may hold wildcards.
func below(at, field string) string {
	switch {
	case field == "metadata":
		return "metadata"
	case at == "metadata" && (field == "labels" || field == "annotations"):
		return "labels"
	}
	return ""
}

// match compares a value with a pattern; a difference goes to why, unless that is nil.
func match(c *limit.Clock, pattern, value any, at string, why *Difference) verdict {
	switch p := pattern.(type) {
	case map[string]any:
		return matchMap(c, p, value, at, why)
	case []any:
		return matchList(c, p, value, why)
	}
	if list, ok := value.([]any); ok {
		return matchEach(c, pattern, list, why)
	}
	if holds(pattern, value) {
		return matched
	}
	return why.whole(pattern, value)
}

func matchMap(c *limit.Clock, pattern map[string]any, value any, at string, why *Difference) verdict {
	object, ok := value.(map[string]any)
	if !ok {
		return why.whole(pattern, value)
	}
	for _, k := range keysOf(pattern) {
		if got := k.match(c, object, at, why); got != matched {
			return got
		}
	}
	return matched
}

// key is a key of a pattern.
type key struct {
	anchor Anchor
	name   string // as objects have it
	want   any
	rank   int // among the keys of its map
}

// keysOf lists the keys in the order in which they are checked: conditions,
// other anchors, plain keys above anchors, plain keys.
func keysOf(pattern map[string]any) []key {
	keys := make([]key, 0, len(pattern))
	for _, written := range slices.Sorted(maps.Keys(pattern)) {
		k := key{want: pattern[written]}
		switch k.anchor, k.name = ParseKey(written); k.anchor {
		case Condition, Global:
			k.rank = 0
		case Equality, Negation, Existence:
			k.rank = 1
		default:
			if k.rank = 3; Has(k.want, Condition, Global, Equality, Negation, Existence) {
				k.rank = 2
			}
			if k.anchor == Add {
				k.name = written
			}
		}
		keys = append(keys, k)
	}
	slices.SortStableFunc(keys, func(a, b key) int { return cmp.Compare(a.rank, b.rank) })
	return keys
}

func (k *key) match(c *limit.Clock, object map[string]any, at string, why *Difference) verdict {
	if c.Step() != nil {
		return mismatched
	}
	got, present := k.lookup(object, at)
	verdict := k.decide(c, got, present, below(at, k.name), why)
	if verdict == matched || why == nil {
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

// decide compares what an object has for the key.
func (k *key) decide(c *limit.Clock, got any, present bool, at string, why *Difference) verdict {
	switch k.anchor {
	case Condition, Global:
		switch {
		case !present && k.anchor == Global:
			return matched
		case !present:
			return leftOut
		}
		verdict := match(c, k.want, got, at, why)
		if verdict == mismatched {
			return leftOut
		}
		return verdict
	case Equality:
		if !present {
			return matched
		}
	case Existence:
		if !present {
			return matched
		}
		return matchExistence(c, k.want, got)
	case Negation:
		return verdictOf(!present)
	default:
		if k.want == any("*") {
			return verdictOf(got != nil)
		}
	}
	return match(c, k.want, got, at, why)
}

// lookup finds the key; in labels and annotations a key with wildcards stands for
// the first one that it matches.
func (k *key) lookup(object map[string]any, at string) (any, bool) {
	if at == "labels" && selector.HasWildcard(k.name) {
		for _, actual := range slices.Sorted(maps.Keys(object)) {
			if selector.MatchWildcard(k.name, actual) {
				return object[actual], true
			}
		}
	}
	got, ok := object[k.name]
	return got, ok
}

// matchExistence asks for one element of a list for each of the patterns, which must be maps.
func matchExistence(c *limit.Clock, pattern, value any) verdict {
	patterns, ok := pattern.([]any)
	list, isList := value.([]any)
	if !ok || !isList {
		return mismatched
	}
	for _, p := range patterns {
		_, isMap := p.(map[string]any)
		if !isMap || !slices.ContainsFunc(list, func(element any) bool { return match(c, p, element, "", nil) == matched }) {
			return mismatched
		}
	}
	return matched
}

// matchList asks, by the first element of the pattern: every map of a list, except for those whose own conditions fail;
// lists of lists element by element; every element for the same scalar.
func matchList(c *limit.Clock, pattern []any, value any, why *Difference) verdict {
	list, ok := value.([]any)
	if !ok || len(pattern) == 0 {
		return why.whole(pattern, value)
	}
	switch first := pattern[0].(type) {
	case map[string]any:
		return matchElements(c, list, func(int) any { return first }, why)
	case []any:
		if len(list) < len(pattern) {
			return why.whole(pattern, value)
		}
		return matchElements(c, list[:len(pattern)], func(i int) any { return pattern[i] }, why)
	default:
		return matchEach(c, first, list, why)
	}
}

// matchElements fails on the first element that does not match. If all of them
// are left out, so is the list, and the first one is the difference.
func matchElements(c *limit.Clock, list []any, pattern func(int) any, why *Difference) verdict {
	asked, first := 0, Difference{}
	for i, element := range list {
		switch match(c, pattern(i), element, "", why) {
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

// matchEach asks every element of a list for the same scalar.
func matchEach(c *limit.Clock, pattern any, list []any, why *Difference) verdict {
	for i, element := range list {
		if c.Step() != nil || !holds(pattern, element) {
			why.whole(pattern, element)
			why.in(i)
			return mismatched
		}
	}
	return matched
}
