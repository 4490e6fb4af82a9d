package pattern

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Match reports whether a value matches a pattern: the content of an anchor, or a scalar. If not, it stores
// the first difference in why, which may be nil. Nothing matches after the clock's time has passed, which its
// error says.
//
// Inside of a pattern the anchors (), <(), =(), X() and ^() work as in validate rules; +() has no meaning
// there: its key is looked up as written and not found. Meaningless patterns match nothing.
//
//   - A map asks for a map; each of its plain keys must match, and `"*"` asks
//     for a key that is there and not null.
//   - Of a list of maps or scalars only the first element is a pattern. Every
//     element of the value must match it; of a list of maps, those whose own
//     conditions fail are left out, but one must remain.
//   - A scalar against a list asks every element.
//
// Scalars keep their types. A caller to whom 3 and "3" are equal, as in anchors of mutate rules, passes both
// as strings.
func Match(c *limit.Clock, pattern, value any, why *Difference) bool {
	d := match(c, pattern, value, "")
	if d != nil && why != nil {
		*why = *d
	}
	return d == nil
}

// Difference is the place where a value does not match a pattern.
type Difference struct {
	Path string // such as "labels.app" or "[0].image"; empty for the value itself
	// Anchor is Negation if the key must not exist, Existence if no list element matches, and None otherwise.
	Anchor    Anchor
	Want, Got any
	// Missing is set if the key does not exist.
	Missing bool
	// leftOut is set for a failed condition, which leaves a list element out; other differences fail the whole
	// list.
	leftOut bool
}

// Below returns the difference of a value at a path.
func (d Difference) Below(path string) Difference {
	switch {
	case path == "":
	case d.Path == "":
		d.Path = path
	case d.Path[0] == '[':
		d.Path = path + d.Path
	default:
		d.Path = path + "." + d.Path
	}
	return d
}

// in is Below for a difference on its way up.
func (d *Difference) in(path string) *Difference {
	*d = d.Below(path)
	return d
}

// Text describes the difference; show formats a value of the object.
func (d Difference) Text(show func(value any) string) string {
	switch {
	case d.Anchor == Negation:
		return d.Path + " must not be there"
	case d.Anchor == Existence:
		return "no element of " + d.Path + " matches"
	case d.Missing:
		return d.Path + " is not there"
	}
	return fmt.Sprintf("%s is %s and does not match %s", d.Path, show(d.Got), engine.BriefValue(d.Want))
}
