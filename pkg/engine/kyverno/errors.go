package kyverno

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
)

// RuleError is the failure of a rule on an object.
type RuleError struct {
	Field string // where in the rule, such as "mutate.foreach[0].list"
	Err   error
}

// Error returns the place in the rule and the reason; the step names the rule.
func (e *RuleError) Error() string { return fmt.Sprintf("%s: %v", e.Field, e.Err) }

// Unwrap returns the reason.
func (e *RuleError) Unwrap() error { return e.Err }

// SkippedError is the reason why a matching rule was skipped.
type SkippedError struct {
	Reason string
	Err    error // the unmet condition; may be nil
}

// Error returns the reason in Kyverno's words, and the unmet condition.
func (e *SkippedError) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return e.Reason + ": " + e.Err.Error()
}

// Unwrap returns the unmet condition.
func (e *SkippedError) Unwrap() error { return e.Err }

// Brief returns the reason without details of the object, so that objects can share it.
func (e *SkippedError) Brief() string {
	var inner interface{ Brief() string }
	if errors.As(e.Err, &inner) {
		return e.Reason + ": " + inner.Brief()
	}
	return e.Reason
}

// outcomeOf returns the outcome and the step's error of a rule that ended with an error.
func outcomeOf(err error) (engine.Outcome, error) {
	if notMatched, ok := err.(*match.NotMatchedError); ok { //nolint:errorlint // nothing wraps it, and most steps end so
		return engine.NotMatched, notMatched.Reason
	}
	switch {
	case isSkipped(err):
		return engine.Skipped, err
	case UnsupportedEntry(err):
		return engine.Unsupported, err
	}
	return engine.Failed, err
}

func isSkipped(err error) bool {
	var skipped *SkippedError
	var ignored *engine.IgnoredError
	return errors.As(err, &skipped) || errors.As(err, &ignored)
}
