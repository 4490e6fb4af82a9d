package mutatingpolicy

import (
	"context"
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// condition is a compiled match condition.
type condition struct {
	field, name string
	expression  *cel.Expression
}

// holds evaluates conditions in order, and returns the one that is false. As in
// Kyverno, that counts more than one before it that fails.
func (e *execution) holds(on *cel.Evaluation, conditions []condition) (unmet *cel.ConditionError, err error) {
	var errs []error
	for _, c := range conditions {
		holds, err := on.Condition(c.expression)
		switch {
		case e.ctx.Err() != nil:
			return nil, context.Cause(e.ctx)
		case err != nil:
			errs = append(errs, &RuleError{Field: c.field, Err: err})
		case !holds:
			return on.Unmet(c.name, c.expression), nil
		}
	}
	return nil, errors.Join(errs...)
}

// RuleError is why a rule could not be evaluated on an object.
type RuleError struct {
	Field string // where in the policy, such as "spec.mutations[0].jsonPatch.expression"
	Err   error
}

// Error says where in the policy, and why; the step beside it names the policy.
func (e *RuleError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap gives the reason.
func (e *RuleError) Unwrap() error { return e.Err }
