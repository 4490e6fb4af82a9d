package pattern

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Difference is where a value does not match a pattern.
type Difference struct {
	Path string // such as "labels.app" or "[0].image"; empty for the value itself
	// Anchor is Negation where the key must not be there, Existence where no element
	// of the list matches, and None for any other difference.
	Anchor    Anchor
	Want, Got any
	// Missing is set where there is no such key.
	Missing bool
}

// Below returns the difference of a value that is itself at a path.
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

// whole stores that a value does not match; d may be nil.
func (d *Difference) whole(want, got any) verdict {
	if d != nil {
		*d = Difference{Want: want, Got: got}
	}
	return mismatched
}

// in moves the difference into an element of a list; d may be nil.
func (d *Difference) in(element int) {
	if d != nil {
		*d = d.Below(fmt.Sprintf("[%d]", element))
	}
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
