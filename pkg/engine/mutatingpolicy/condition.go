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

// holds evaluates conditions in order, and returns the first that is false. As in Kyverno,
// that counts more than a failure of one before it.
func (e *execution) holds(on *cel.Evaluation, conditions []condition) (unmet *cel.ConditionError, err error) {
	var errs []error
	for _, c := range conditions {
		holds, err := on.Condition(c.expression)
		switch {
		case e.outer.Err() != nil:
			return nil, context.Cause(e.outer)
		case err != nil:
			errs = append(errs, &cel.ExpressionError{Field: c.field, Err: err})
		case !holds:
			return on.Unmet(c.name, c.expression), nil
		}
	}
	return nil, errors.Join(errs...)
}
