package admissionpolicy

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// failedAt names the field of an expression that failed. Its text is left out: everyone can read it there.
func failedAt(field string, err error) error {
	var failed *cel.EvaluationError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("%s: %w", field, err)
}

// noParameterError is a binding of which there are no parameters.
type noParameterError struct {
	wants  engine.Selection
	denies bool
}

// Error names the parameters, and what the binding does without them.
func (e *noParameterError) Error() string {
	action := "Allow"
	if e.denies {
		action = "Deny"
	}
	return fmt.Sprintf("there is no %s, and parameterNotFoundAction is %s", e.wants, action)
}
