package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Change is everything the run did to one object. Before and After are the same
// object where nothing changed, and nil where the object does not exist (a
// mutate-existing rule named a target that is not there).
type Change struct {
	Subject       ObjectKey
	Before, After *unstructured.Unstructured
	// Target is what was evaluated, so that it can be evaluated again.
	Target Target
	// Scoped reports whether the object is one that the user chose, so that its
	// own rules ran, and not only one that a mutate-existing rule reached.
	Scoped bool
	// Fields is what differs between Before and After as the server reads them, in
	// path order. It is computed from the steps, never reported by a dialect.
	Fields []FieldChange
	// Steps are in the order in which they happened. A rule that did not match is a
	// Step only if the run keeps reasons; otherwise it is in NotMatched.
	Steps      []Step
	NotMatched []RuleRef
	// Impacts is what the change means beyond its fields, as far as the run had it
	// reviewed (evaluation.Options.Review).
	Impacts []Impact
	// Shown is the change as it may be shown, without what was made of Secrets; nil where
	// that is the change itself.
	Shown *Change
}

// ToShow returns the change as it may be shown.
func (c *Change) ToShow() *Change {
	if c.Shown != nil {
		return c.Shown
	}
	return c
}

// Changed reports whether the object would differ.
func (c *Change) Changed() bool { return len(c.Fields) > 0 }

// Writes reports whether a rule wrote to the object, even if a later one undid it.
func (c *Change) Writes() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Outcome == Changed })
}

// Denied reports whether admission would refuse the object as it would be.
func (c *Change) Denied() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Outcome == Denied })
}

// Refused reports whether the server would refuse the change, as far as that is known.
func (c *Change) Refused() bool {
	return slices.ContainsFunc(c.Impacts, func(i Impact) bool { return i.Code.Refuses() })
}

// Incomplete reports whether a step failed, was denied or is unsupported, so that
// the whole effect of the policies on this object is not known.
func (c *Change) Incomplete() bool {
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.Outcome.Incomplete() })
}
