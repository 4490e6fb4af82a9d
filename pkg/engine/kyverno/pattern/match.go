package pattern

import (
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Match tells whether the value matches the pattern, the content of an anchor
// or a scalar. Inside of it the anchors (), <(), =(), X() and ^() have the
// meaning that they have in validate rules; +() has none there, so that a key
// in it is looked up as it is written and not found.
//
//   - A map asks for a map; each of its plain keys must match, and `"*"` asks
//     for a key that is there and not null.
//   - Of a list of maps or scalars only the first element is a pattern. Every
//     element of the value must match it; of a list of maps, those whose own
//     conditions fail are left out, but one must remain.
//   - A scalar against a list asks every element.
//
// Scalars keep their types: whoever wants 3 and "3" to be the same, as the
// anchors of mutate rules do, hands over text.
func Match(pattern, value any) bool {
	return match(pattern, value, anywhere) == matched
}

// verdict keeps what Kyverno keeps in its error types: a failed condition
// leaves a list element out, any other mismatch fails the whole list.
type verdict int

const (
	matched verdict = iota
	leftOut
	mismatched
)

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

func match(pattern, value any, at place) verdict {
	switch p := pattern.(type) {
	case map[string]any:
		v, ok := value.(map[string]any)
		if !ok {
			return mismatched
		}
		return matchMap(p, v, at)
	case []any:
		v, ok := value.([]any)
		if !ok || len(p) == 0 {
			return mismatched
		}
		return matchList(p, v)
	default:
		if list, ok := value.([]any); ok {
			return matchEach(pattern, list)
		}
		return verdictOf(matchScalar(pattern, value))
	}
}

func verdictOf(ok bool) verdict {
	if ok {
		return matched
	}
	return mismatched
}

// matchMap checks anchors before plain keys, and conditions before all else.
func matchMap(pattern, value map[string]any, at place) verdict {
	for _, key := range ordered(pattern) {
		if got := matchKey(key, pattern[key], value, at); got != matched {
			return got
		}
	}
	return matched
}

// ordered sorts the keys of a pattern: conditions, other anchors, plain keys
// above anchors, plain keys.
func ordered(pattern map[string]any) []string {
	keys := slices.Sorted(maps.Keys(pattern))
	rank := func(key string) int {
		switch anchor, _ := ParseKey(key); anchor {
		case Condition, Global:
			return 0
		case Equality, Negation, Existence:
			return 1
		default:
			if hasAnchors(pattern[key]) {
				return 2
			}
			return 3
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return rank(a) - rank(b) })
	return keys
}

// hasAnchors tells whether a check is hidden in the pattern: +() is none.
func hasAnchors(pattern any) bool {
	switch p := pattern.(type) {
	case map[string]any:
		for key, value := range p {
			if anchor, _ := ParseKey(key); (anchor != None && anchor != Add) || hasAnchors(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, hasAnchors)
	}
	return false
}

func matchKey(key string, pattern any, value map[string]any, at place) verdict {
	anchor, plain := ParseKey(key)
	if anchor == Add {
		plain = key
	}
	got, present := lookup(value, plain, at)
	switch anchor {
	case Condition:
		if !present || match(pattern, got, at.child(plain)) != matched {
			return leftOut
		}
		return matched
	case Global:
		if present && match(pattern, got, at.child(plain)) != matched {
			return leftOut
		}
		return matched
	case Equality:
		if !present {
			return matched
		}
		return match(pattern, got, at.child(plain))
	case Negation:
		return verdictOf(!present)
	case Existence:
		return matchSome(pattern, got, present)
	default:
		if pattern == "*" {
			return verdictOf(got != nil)
		}
		return match(pattern, got, at.child(plain))
	}
}

// lookup finds a key; in labels and annotations a key with wildcards stands for
// the first one that it matches.
func lookup(value map[string]any, key string, at place) (any, bool) {
	if at == inLabels && selector.HasWildcard(key) {
		for _, actual := range slices.Sorted(maps.Keys(value)) {
			if selector.MatchWildcard(key, actual) {
				return value[actual], true
			}
		}
	}
	got, ok := value[key]
	return got, ok
}

// matchSome asks for one element of the list for each of the patterns.
func matchSome(pattern, value any, present bool) verdict {
	if !present {
		return matched
	}
	list, ok := value.([]any)
	if !ok {
		return mismatched
	}
	patterns, ok := pattern.([]any)
	if !ok {
		return mismatched
	}
	for _, p := range patterns {
		if _, isMap := p.(map[string]any); !isMap {
			return mismatched
		}
		if !slices.ContainsFunc(list, func(element any) bool { return match(p, element, anywhere) == matched }) {
			return mismatched
		}
	}
	return matched
}

func matchList(pattern, value []any) verdict {
	switch first := pattern[0].(type) {
	case map[string]any:
		return matchElements(first, value)
	case []any:
		return matchPairs(pattern, value)
	default:
		return matchEach(first, value)
	}
}

// matchElements asks every map of a list, but those whose own conditions fail.
func matchElements(pattern map[string]any, list []any) verdict {
	asked := 0
	for _, element := range list {
		switch match(pattern, element, anywhere) {
		case mismatched:
			return mismatched
		case matched:
			asked++
		}
	}
	if asked == 0 && len(list) > 0 {
		return leftOut
	}
	return matched
}

// matchPairs matches lists of lists element by element.
func matchPairs(pattern, list []any) verdict {
	if len(list) < len(pattern) {
		return mismatched
	}
	asked := 0
	for i, p := range pattern {
		switch match(p, list[i], anywhere) {
		case mismatched:
			return mismatched
		case matched:
			asked++
		}
	}
	if asked == 0 {
		return leftOut
	}
	return matched
}

// matchEach asks every element of a list for the same scalar.
func matchEach(pattern any, list []any) verdict {
	for _, element := range list {
		if !matchScalar(pattern, element) {
			return mismatched
		}
	}
	return matched
}
