package contextentry

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// refused is a request of a policy that is never made.
func (r *request) refused(reason string) error {
	return &jmespath.UnsupportedError{Reason: fmt.Sprintf("%s %s is refused: %s", r.method, r.target, reason)}
}

// Unsupported reports whether this program is the cause of an error, not the policy: it cannot, or may not,
// do what Kyverno could.
func Unsupported(err error) bool {
	var unsupported *jmespath.UnsupportedError
	var unanswered *engine.UnansweredError
	return errors.As(err, &unsupported) || errors.As(err, &unanswered)
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
