package contextentry

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// UnavailableError is a source that this run does not have, or may not use.
type UnavailableError struct {
	Field  string // in the rule, such as "context[0].imageRegistry"
	Reason string
}

// Error names the field and the reason.
func (e *UnavailableError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// RefusedCallError is a request of a policy that is never made.
type RefusedCallError struct {
	Method, Target string
	Reason         string
}

// Error names the request and why it is refused.
func (e *RefusedCallError) Error() string {
	return fmt.Sprintf("%s %s is refused: %s", e.Method, e.Target, e.Reason)
}

// Unsupported reports whether loading failed because this program cannot, or may not,
// do what the entry asks for, where Kyverno could.
func Unsupported(err error) bool {
	var unavailable *UnavailableError
	var refused *RefusedCallError
	var function *jmespath.UnsupportedError
	var unanswered *engine.UnansweredError
	return errors.As(err, &unavailable) || errors.As(err, &refused) || errors.As(err, &function) || errors.As(err, &unanswered)
}

// decisive reports whether no default may hide an error: the run was cancelled, this program cannot do what the
// expression asks for, or that depends on a value that is hidden.
func (from *Sources) decisive(err error) bool {
	return err != nil && (from.Context.Err() != nil || Unsupported(err))
}

// unreadableAnswer is an answer that cannot be used.
type unreadableAnswer struct{ err error }

func (e *unreadableAnswer) Error() string { return fmt.Sprintf("the answer is not JSON: %v", e.err) }

func (e *unreadableAnswer) Unwrap() error { return e.err }
