package kyverno

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/contextentry"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
)

// RuleError is why a rule could not be evaluated on an object.
type RuleError struct {
	Field string // where in the rule, such as "mutate.foreach[0].list"
	Err   error
}

// Error gives the place in the rule and the reason; the step names the rule.
func (e *RuleError) Error() string { return fmt.Sprintf("%s: %v", e.Field, e.Err) }

// Unwrap returns the reason.
func (e *RuleError) Unwrap() error { return e.Err }

// SkippedError is why a rule that matched was skipped.
type SkippedError struct {
	Reason string
	Err    error // what did not hold; nil where there is nothing to add
}

// Error is the reason in Kyverno's words, and what did not hold.
func (e *SkippedError) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return e.Reason + ": " + e.Err.Error()
}

// Unwrap returns what did not hold.
func (e *SkippedError) Unwrap() error { return e.Err }

// Brief is the reason without what was found on the one object, so that many
// objects share it.
func (e *SkippedError) Brief() string {
	var inner interface{ Brief() string }
	if errors.As(e.Err, &inner) {
		return e.Reason + ": " + inner.Brief()
	}
	return e.Reason
}

// PassedOverError is why elements of a foreach are not patched.
type PassedOverError struct {
	Elements int   // how many are skipped
	Index    int   // of the last one, in its list
	Err      error // why that one is skipped
}

// Error counts the elements and gives the reason of the last one.
func (e *PassedOverError) Error() string {
	if e.Elements == 1 {
		return fmt.Sprintf("element %d: %v", e.Index, e.Err)
	}
	return fmt.Sprintf("%d elements are skipped, such as element %d: %v", e.Elements, e.Index, e.Err)
}

// Unwrap returns the reason of the last element.
func (e *PassedOverError) Unwrap() error { return e.Err }

// and adds an element.
func (e *PassedOverError) and(index int, err error) *PassedOverError {
	if e == nil {
		return &PassedOverError{Elements: 1, Index: index, Err: err}
	}
	return &PassedOverError{Elements: e.Elements + 1, Index: index, Err: err}
}

// TriedTwiceError is why a rule that does not run on an update does not run on a
// creation either.
type TriedTwiceError struct{ Err, AsCreated error }

// Error gives both reasons.
func (e *TriedTwiceError) Error() string {
	return e.Err.Error() + "; and as if created: " + e.AsCreated.Error()
}

// Unwrap returns the reason of the update, which is the outcome.
func (e *TriedTwiceError) Unwrap() error { return e.Err }

// outcomeOf returns the outcome of a rule that ended with an error.
func outcomeOf(err error) engine.Outcome {
	var notMatched *match.NotMatchedError
	switch {
	case errors.As(err, &notMatched):
		return engine.NotMatched
	case isSkipped(err):
		return engine.Skipped
	case contextentry.Unsupported(err):
		return engine.Unsupported
	}
	return engine.Failed
}

// mismatch is the reason of a rule that does not match; nil where it is not wanted.
func mismatch(err error) error {
	var notMatched *match.NotMatchedError
	if errors.As(err, &notMatched) {
		return notMatched.Reason
	}
	return nil
}

func isSkipped(err error) bool {
	var skipped *SkippedError
	return errors.As(err, &skipped)
}
