package cel

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// EvaluationError is an expression that fails on an object.
type EvaluationError struct {
	Expression string // empty where it is not to be quoted
	Err        error
}

// Error quotes the expression, shortened to one line.
func (e *EvaluationError) Error() string {
	if e.Expression == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("expression %q resulted in error: %v", shorten(e.Expression), e.Err)
}

// Unwrap returns the reason.
func (e *EvaluationError) Unwrap() error { return e.Err }

// At adds the place of an expression to its error, and how to name a user whom it asks for and who is not known.
func (x *Expression) At(err error) error {
	if err == nil {
		return nil
	}
	if x.Path != "" {
		err = fmt.Errorf("%s: %w", x.Path, err)
	}
	var unknown *unknownUserError
	if errors.As(err, &unknown) {
		return &engine.UnknownUserError{Why: unknown.why, Err: err}
	}
	return err
}

// maxQuoted is how much of an expression an error quotes, in bytes.
const maxQuoted = 120

// shorten puts an expression on one short line.
func shorten(expression string) string {
	return engine.Shorten(strings.Join(strings.Fields(expression), " "), maxQuoted)
}

// LimitError is an evaluation that was stopped because it reached a limit.
type LimitError struct {
	Expression string
	Limit      limit.Error
	Server     bool // an API server has this limit too
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("expression %q was stopped: it %s", shorten(e.Expression), e.Limit.Error())
}

// Unwrap returns the limit if it is of this program alone, so that what a server would do is not known.
func (e *LimitError) Unwrap() error {
	if e.Server {
		return nil
	}
	return &e.Limit
}

// UnsupportedError is something that a policy needs and this run does not have.
type UnsupportedError struct {
	Reason string
	Err    error // the cause; nil where there is none
}

// Error is the reason.
func (e *UnsupportedError) Error() string { return e.Reason }

// Unwrap returns the cause.
func (e *UnsupportedError) Unwrap() error { return e.Err }

// AtomicError is an apply configuration with values that can only be replaced as a
// whole.
type AtomicError struct{ Paths []string }

// Error is the server's text, with a hint.
func (e *AtomicError) Error() string {
	return "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: " + strings.Join(e.Paths, ", ") +
		" (a JSONPatch mutation can)"
}

// noSchema is the error of a kind without a schema, which says how its lists and maps merge.
func noSchema(kind schema.GroupVersionKind) error {
	return &UnsupportedError{Reason: fmt.Sprintf("an apply configuration cannot be merged without the schema of %s, and a guess could lose data: "+
		"none is published or built in; for files, give its CustomResourceDefinition with -f or --world", kindText(kind))}
}

// kindText is a kind as messages name it: "apps/v1 Deployment".
func kindText(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}
