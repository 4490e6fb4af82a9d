package apply

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// ObjectError is why one object was not changed. A Want returns one if it fails for
// this object alone; any other error of it ends the run.
type ObjectError struct {
	Key engine.ObjectKey
	Err error
}

// Error is "apps/Deployment shop/web: reason".
func (e *ObjectError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

// Unwrap returns the reason.
func (e *ObjectError) Unwrap() error { return e.Err }

// HeldBackError reports that an object was not written because a change that it triggers was not made: it may
// trigger that only as it is.
type HeldBackError struct{ Target engine.ObjectKey }

// Error names the target, and says what can be done.
func (e *HeldBackError) Error() string {
	return fmt.Sprintf("it triggers the change of %s, which was not made and might not be triggered any more; run again when that can be written", e.Target)
}

// ConflictError reports fields of managers that would set them back.
type ConflictError struct{ Takeovers []request.Takeover }

// Error names every field, its owner and what can be done.
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

// DriftError reports that another client has written the object, so that the change is
// not the one that was shown.
type DriftError struct{ Fields []fieldpath.Path }

// Error names the fields.
func (e *DriftError) Error() string {
	names := make([]string, len(e.Fields))
	for i, p := range e.Fields {
		names[i] = engine.PathString(p)
	}
	return fmt.Sprintf("the object was modified in the meantime, and the change is a different one now (%s); preview it again", strings.Join(names, ", "))
}

// ManagedError reports that the object is kept as it is described elsewhere.
type ManagedError struct{ By, Source string }

// Error names the manager, and says what can be done.
func (e *ManagedError) Error() string {
	return fmt.Sprintf("managed by %s, which would set the change back; change %s, or write it anyway with --include-managed", e.By, e.Source)
}

// BusyError reports that other writers were faster every time.
type BusyError struct{ Attempts int }

// Error says how often.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the object changed during each of %d attempts; run the command again", e.Attempts)
}

// RejectedError is the server's refusal of a request, in words that are safe to show
// (redact.ServerError).
type RejectedError struct {
	Text string
	Err  error // as the server sent it; its text may quote secret values
}

// Error is the redacted text.
func (e *RejectedError) Error() string { return "the server rejects the change: " + e.Text }

// Unwrap returns the original, for apierrors.IsForbidden and the like.
func (e *RejectedError) Unwrap() error { return e.Err }
