package admissionpolicy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// DeniedError is why an object would be denied: a policy whose failurePolicy is
// Fail cannot be evaluated on it.
type DeniedError struct{ Err error }

// Error is the reason, and what follows from it.
func (e *DeniedError) Error() string {
	return e.Err.Error() + ", so that the object would be denied"
}

// Unwrap gives the reason.
func (e *DeniedError) Unwrap() error { return e.Err }

// IgnoredError is a failure of a policy whose failurePolicy is Ignore.
type IgnoredError struct{ Err error }

// Error is the reason.
func (e *IgnoredError) Error() string {
	return e.Err.Error() + " (ignored, by the failurePolicy)"
}

// Unwrap gives the reason.
func (e *IgnoredError) Unwrap() error { return e.Err }

// HeldBackError is why a policy that matched changes nothing: another one would
// have the object denied.
type HeldBackError struct{ By string }

// Error names the policy that fails.
func (e *HeldBackError) Error() string {
	return fmt.Sprintf("%s would have the object denied, so that no policy changes it", e.By)
}

// ExpressionError is an expression that fails on an object.
type ExpressionError struct {
	Field string // "spec.mutations[0].jsonPatch.expression"
	Err   error
}

// newExpressionError says which expression of the policy failed, which stands
// there for everyone to read.
func newExpressionError(n policydecode.Node, err error) error {
	var failed *cel.EvaluationError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return &ExpressionError{Field: n.Path, Err: err}
}

// Error names the expression.
func (e *ExpressionError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap gives the reason.
func (e *ExpressionError) Unwrap() error { return e.Err }

// ParameterError is a binding whose parameters cannot be had.
type ParameterError struct{ Err error }

// Error is the reason.
func (e *ParameterError) Error() string { return "parameters of the binding: " + e.Err.Error() }

// Unwrap gives the reason.
func (e *ParameterError) Unwrap() error { return e.Err }

var errNoParameter = errors.New("none is there, and parameterNotFoundAction is Deny")

// excludedError is why the object is never mutated by a policy of the API.
type excludedError struct{ what string }

// Error says what is excluded.
func (e *excludedError) Error() string {
	return "an API server never mutates " + e.what + " by policies"
}

// joined is several errors in one line.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return &manyErrors{errs}
}

type manyErrors struct{ all []error }

// Error joins the reasons.
func (e *manyErrors) Error() string {
	texts := make([]string, len(e.all))
	for i, err := range e.all {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives the reasons.
func (e *manyErrors) Unwrap() []error { return e.all }
