package admissionpolicy

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// newExpressionError names the field of an expression that failed. Its text is left out:
// everyone can read it there.
func newExpressionError(n policydecode.Node, err error) error {
	var failed *cel.EvaluationError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return &cel.ExpressionError{Field: n.Path, Err: err}
}

// parameterError is a binding whose parameters cannot be had.
type parameterError struct{ Err error }

// Error is the reason.
func (e *parameterError) Error() string { return "parameters of the binding: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *parameterError) Unwrap() error { return e.Err }

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

// excludedError is why policies of the API never mutate an object.
type excludedError struct{ what string }

// Error names what is excluded.
func (e *excludedError) Error() string {
	return "an API server never mutates " + e.what + " by policies"
}
