package apply

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// ObjectError says why one object was not changed. A Want returns one when it has
// no answer for this object alone; any other error of it ends the run.
type ObjectError struct {
	Key engine.ObjectKey
	Err error
}

// Error is "apps/Deployment shop/web: reason".
func (e *ObjectError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

// Unwrap gives the reason.
func (e *ObjectError) Unwrap() error { return e.Err }

// ConflictError tells that fields belong to managers that would set them back.
type ConflictError struct{ Takeovers []request.Takeover }

// Error names every field, its owner and the way out.
func (e *ConflictError) Error() string {
	var owners, flags []string
	for _, t := range e.Takeovers {
		owners = append(owners, t.String())
		if flag := "--take-from=" + t.Manager; !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return fmt.Sprintf("conflict with %s; change it there, or take it over with %s (the owner will then set it back, or fail)",
		strings.Join(owners, "; "), strings.Join(flags, " "))
}

// LossError tells that the server would drop live data that the change means to keep.
type LossError struct{ Lost request.Difference }

// Error names the fields.
func (e *LossError) Error() string {
	return fmt.Sprintf("the server would drop %s, which the change means to keep; nothing was written, because that needs a yes for this object alone",
		strings.Join(e.Lost.Paths(), ", "))
}

// RefusedError tells that the server would take the request and ignore a part of it.
type RefusedError struct{ Refused request.Difference }

// Error names the fields.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server ignores %s; nothing was written", strings.Join(e.Refused.Paths(), ", "))
}

// DriftError tells that somebody else has written the object, so that what was
// shown is not what would be done now.
type DriftError struct{ Fields []fieldpath.Path }

// Error names the fields.
func (e *DriftError) Error() string {
	names := make([]string, len(e.Fields))
	for i, p := range e.Fields {
		names[i] = engine.PathString(p)
	}
	return fmt.Sprintf("somebody has changed the object meanwhile, and the change is another one now (%s); preview it again", strings.Join(names, ", "))
}

// ManagedError tells that something keeps the object as it is described elsewhere.
type ManagedError struct{ By, Source string }

// Error names it, and the ways out.
func (e *ManagedError) Error() string {
	return fmt.Sprintf("managed by %s, which would set the change back; change %s, or write it all the same with --include-managed", e.By, e.Source)
}

// BusyError tells that other writers were always faster.
type BusyError struct{ Tries int }

// Error says how often.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the object changed during each of %d tries; run the command again", e.Tries)
}

// RejectedError is the server's refusal of a request, in words that are safe to
// show: those of servererror.Text.
type RejectedError struct {
	Text string
	Err  error // as the server sent it; its text may quote secret values
}

// Error gives the cleaned text.
func (e *RejectedError) Error() string { return "the server rejects the change: " + e.Text }

// Unwrap gives the original, for apierrors.IsForbidden and the like.
func (e *RejectedError) Unwrap() error { return e.Err }
