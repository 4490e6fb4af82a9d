package apply

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/intent"
)

// ObjectError says why one object was not changed. A function that Writer.Apply
// asks for the wanted object returns one when it has no answer for this object
// alone; any other error of it ends the run.
type ObjectError struct {
	Key engine.ObjectKey
	Err error
}

// Error is "apps/Deployment shop/web: reason".
func (e *ObjectError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

// Unwrap gives the reason.
func (e *ObjectError) Unwrap() error { return e.Err }

// ConflictError tells that fields belong to managers that would set them back.
type ConflictError struct{ Takeovers []intent.Takeover }

// Error names every field, its owner and the way out.
func (e *ConflictError) Error() string {
	owners := make([]string, len(e.Takeovers))
	for i, t := range e.Takeovers {
		owners[i] = t.String()
	}
	return fmt.Sprintf("conflict with %s; change it there, or take the fields over with --force-conflicts "+
		"(the owner will then set them back, or fail)", strings.Join(owners, "; "))
}

// LossError tells that the server would drop live data that the change means to keep.
type LossError struct{ Lost intent.Difference }

// Error names the fields.
func (e *LossError) Error() string {
	return fmt.Sprintf("the server would drop %s, which the change means to keep; nothing was written, because that needs a yes for this object alone",
		strings.Join(e.Lost.Paths(), ", "))
}

// RefusedError tells that the server would take the request and ignore a part of it.
type RefusedError struct{ Refused intent.Difference }

// Error names the fields.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server ignores %s; nothing was written", strings.Join(e.Refused.Paths(), ", "))
}

// BusyError tells that other writers were always faster.
type BusyError struct{ Tries int }

// Error says how often.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the object changed during each of %d tries; run the command again", e.Tries)
}

// RejectedError is the server's refusal of a request, in words that are safe to
// show: see CleanServerError.
type RejectedError struct {
	Text string
	Err  error // as the server sent it; its text may quote secret values
}

// Error gives the cleaned text.
func (e *RejectedError) Error() string { return "the server rejects the change: " + e.Text }

// Unwrap gives the original, for apierrors.IsForbidden and the like.
func (e *RejectedError) Unwrap() error { return e.Err }
