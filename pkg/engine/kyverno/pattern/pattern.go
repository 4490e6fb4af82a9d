package pattern

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Pattern is a compiled pattern: the content of an anchor, or a scalar. It is
// immutable and safe for concurrent use. Inside of it the anchors (), <(), =(),
// X() and ^() have the meaning that they have in validate rules; +() has none
// there, so that a key in it is looked up as it is written and not found.
//
//   - A map asks for a map; each of its plain keys must match, and `"*"` asks
//     for a key that is there and not null.
//   - Of a list of maps or scalars only the first element is a pattern. Every
//     element of the value must match it; of a list of maps, those whose own
//     conditions fail are left out, but one must remain.
//   - A scalar against a list asks every element.
//
// Scalars keep their types. A caller to whom 3 and "3" are the same, as they are
// to the anchors of mutate rules, passes both as text.
type Pattern struct {
	root matcher
	err  error // a text in it is no wildcard pattern
}

// Compile reads a pattern. What has no meaning matches nothing; a text that is no wildcard
// pattern is an error of Match.
func Compile(pattern any) *Pattern { return &Pattern{root: compile(pattern), err: checkTexts(pattern)} }

// checkTexts returns an error if it takes too long to match a text of the pattern, so that it is
// not known what it matches.
func checkTexts(pattern any) error {
	switch p := pattern.(type) {
	case string:
		if err := selector.CheckWildcard(p); err != nil {
			return fmt.Errorf("a text %w", err)
		}
	case []any:
		for _, item := range p {
			if err := checkTexts(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(p)) {
			if err := cmp.Or(checkTexts(key), checkTexts(p[key])); err != nil {
				return err
			}
		}
	}
	return nil
}

// Match reports whether the value matches. Where it does not, Match stores in why
// the first difference, in the order in which it looks; why may be nil. The error is that of
// the clock, or of a text that is no wildcard pattern.
func (p *Pattern) Match(c *limit.Clock, value any, why *Difference) (bool, error) {
	if p.err != nil {
		return false, p.err
	}
	verdict := p.root.match(c, value, anywhere, why)
	if verdict == stopped {
		return false, c.Err()
	}
	return verdict == matched, nil
}

func compile(pattern any) matcher {
	switch p := pattern.(type) {
	case map[string]any:
		return compileMap(p)
	case []any:
		return compileList(p)
	default:
		return &scalarMatcher{want: pattern, scalar: compileScalar(pattern)}
	}
}

// compileMap puts the keys in the order in which they are checked: conditions,
// other anchors, plain keys above anchors, plain keys.
func compileMap(pattern map[string]any) matcher {
	m := &mapMatcher{want: pattern, keys: make([]keyMatcher, 0, len(pattern))}
	for _, key := range slices.Sorted(maps.Keys(pattern)) {
		m.keys = append(m.keys, compileKey(key, pattern[key]))
	}
	slices.SortStableFunc(m.keys, func(a, b keyMatcher) int { return a.rank - b.rank })
	return m
}

func compileKey(key string, pattern any) keyMatcher {
	anchor, name := ParseKey(key)
	k := keyMatcher{anchor: anchor, name: name, want: pattern}
	switch anchor {
	case Condition, Global:
		k.rank = 0
	case Equality, Negation, Existence:
		k.rank = 1
	default:
		k.rank = 3
		if checksAnchors(pattern) {
			k.rank = 2
		}
		k.anything = pattern == "*"
	}
	switch anchor {
	case Add:
		k.name = key
	case Existence:
		k.value = compileExistence(pattern)
		return k
	}
	k.value = compile(pattern)
	return k
}

// checksAnchors reports whether an anchor checks something in the pattern; +()
// does not.
func checksAnchors(pattern any) bool {
	switch p := pattern.(type) {
	case map[string]any:
		for key, value := range p {
			if anchor, _ := ParseKey(key); (anchor != None && anchor != Add) || checksAnchors(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(p, checksAnchors)
	}
	return false
}

// compileExistence reads the value of ^(), which must be a list of maps.
func compileExistence(pattern any) matcher {
	list, ok := pattern.([]any)
	if !ok {
		return nothing{pattern}
	}
	m := make(someElements, len(list))
	for i, element := range list {
		if _, isMap := element.(map[string]any); !isMap {
			return nothing{pattern}
		}
		m[i] = compile(element)
	}
	return m
}

func compileList(pattern []any) matcher {
	if len(pattern) == 0 {
		return nothing{pattern}
	}
	switch first := pattern[0].(type) {
	case map[string]any:
		return &everyElement{want: pattern, element: compile(first)}
	case []any:
		m := &pairs{want: pattern, elements: make([]matcher, len(pattern))}
		for i, element := range pattern {
			m.elements[i] = compile(element)
		}
		return m
	default:
		return &everyScalar{want: pattern, element: scalarMatcher{want: first, scalar: compileScalar(first)}}
	}
}
