package pattern

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Pattern is a pattern: the content of an anchor, or a scalar. It is
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
	written any
	err     error // a text in it is no wildcard pattern
}

// Compile reads a pattern. What has no meaning matches nothing; a text that is no wildcard
// pattern is an error of Match.
func Compile(pattern any) *Pattern { return &Pattern{written: pattern, err: checkTexts(pattern)} }

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
	verdict := match(c, p.written, value, anywhere, why)
	if verdict == stopped {
		return false, c.Err()
	}
	return verdict == matched, nil
}
