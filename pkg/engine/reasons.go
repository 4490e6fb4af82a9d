package engine

import (
	"errors"
	"fmt"
	"strings"
)

// mostReasons bounds what is reported.
const mostReasons = 3

// Reasons collects why one rule did what it did on one object. A nil Reasons collects
// none, for runs that do not keep reasons.
type Reasons struct {
	place    string // in front of each reason
	gathered *gathered
}

type gathered struct {
	texts []string
	more  int // beyond those that are kept
}

// NewReasons returns an empty list.
func NewReasons() *Reasons { return &Reasons{gathered: &gathered{}} }

// At returns the same list for a part of the rule, which its reasons then name.
func (l *Reasons) At(place string) *Reasons {
	if l == nil {
		return nil
	}
	return &Reasons{place: l.place + place + ": ", gathered: l.gathered}
}

// Add adds a reason. Reasons beyond the bound are counted, and not formatted.
func (l *Reasons) Add(format string, args ...any) {
	switch {
	case l == nil:
	case len(l.gathered.texts) == mostReasons:
		l.gathered.more++
	default:
		l.gathered.texts = append(l.gathered.texts, l.place+fmt.Sprintf(format, args...))
	}
}

// Err returns all reasons as one error, or nil if there are none: why a rule that ran changed nothing, where the object does
// not simply have what the rule writes already.
func (l *Reasons) Err() error {
	if l == nil || len(l.gathered.texts) == 0 {
		return nil
	}
	text := strings.Join(l.gathered.texts, "; ")
	if l.gathered.more > 0 {
		text += fmt.Sprintf("; and %d more such", l.gathered.more)
	}
	return errors.New(text)
}
