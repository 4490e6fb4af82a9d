package pattern

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"

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
type Pattern struct{ written any }

// Compile reads a pattern. What has no meaning matches nothing.
func Compile(pattern any) *Pattern { return &Pattern{written: pattern} }

// Match reports whether the value matches. Where it does not, Match stores in why
// the first difference, in the order in which it looks; why may be nil. Nothing matches once
// the time of the clock has passed, which its error says.
func (p *Pattern) Match(c *limit.Clock, value any, why *Difference) bool {
	return match(c, p.written, value, anywhere, why) == matched
}
