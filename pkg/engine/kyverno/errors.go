package kyverno

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/conditions"
)

// RuleError is why a rule could not be evaluated on an object.
type RuleError struct {
	Field string // where in the rule, such as "mutate.foreach[0].list"
	Err   error
}

// Error says where in the rule, and why; the step beside it names the rule.
func (e *RuleError) Error() string { return fmt.Sprintf("%s: %v", e.Field, e.Err) }

// Unwrap gives the reason.
func (e *RuleError) Unwrap() error { return e.Err }

// UnsupportedError is a part of a rule that this program cannot, or may not,
// evaluate.
type UnsupportedError struct {
	Field  string
	Reason string
}

// Error names the field and the reason.
func (e *UnsupportedError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// SkippedError is why a rule that matched was held back.
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

// Unwrap gives what did not hold.
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

// PreconditionError tells which preconditions do not hold.
type PreconditionError struct{ Verdict conditions.Verdict }

// Error lists the conditions; the text is made here and not before.
func (e *PreconditionError) Error() string { return e.Verdict.Why() }
