package kyverno

import (
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

// outcomeOf returns the outcome and the step's error of a rule that ended with an error.
func outcomeOf(err error) (engine.Outcome, error) {
	if notMatched, ok := err.(*match.NotMatchedError); ok { //nolint:errorlint // nothing wraps it, and most steps end so
		return engine.NotMatched, notMatched.Reason
	}
	return engine.OutcomeOf(err), err
}

func isSkipped(err error) bool { return err != nil && engine.OutcomeOf(err) == engine.Skipped }
