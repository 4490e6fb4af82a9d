package write

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// Outcome is the result of writing a change.
type Outcome string

// The outcomes.
const (
	Applied Outcome = "applied"
	// Planned: it would be applied, but this is a dry run.
	Planned Outcome = "planned"
	// Unchanged: the object is already as wanted; nothing was sent.
	Unchanged Outcome = "unchanged"
	// ServerKeepsValue: the server would not change the object as wanted; nothing was written.
	ServerKeepsValue Outcome = "server-keeps-value"
	// Deleted, Replaced and Terminating: the object no longer exists, is a new one of the same name, or is being
	// deleted. Skipped.
	Deleted     Outcome = "deleted"
	Replaced    Outcome = "replaced"
	Terminating Outcome = "terminating"
	// Conflicted: the manager of a field would set it back. Err is a *ConflictError.
	Conflicted Outcome = "conflicted"
	// Declined: the change needs its own confirmation and did not get it.
	Declined Outcome = "declined"
	// Drifted: another client has written the object, and the change is now different, or contradicted. Err may
	// be the *plan.Drift of Want.
	Drifted Outcome = "drifted"
	// Managed: something else manages the object, and the user did not allow to write it. Err is a
	// *ManagedError.
	Managed Outcome = "managed"
	// Ignored: the object meanwhile has engine.IgnoreAnnotation, so that rules skip it.
	Ignored Outcome = "ignored"
	// NotTried: the run ended before this object.
	NotTried Outcome = "not-tried"
	// Failed: the server rejected or ignored the change, or there is no request for it.
	Failed Outcome = "failed"
)

// ShownPath returns the redacted path: up to a name derived from a Secret.
func (r *Result) ShownPath(p fieldpath.Path) fieldpath.Path {
	for _, f := range r.Secrets {
		p = f.ShownPath(p)
	}
	return p
}

// Reached reports whether the object is, or would be, as wanted.
func (o Outcome) Reached() bool { return o == Applied || o == Planned || o == Unchanged }

// misses reports whether a wanted change was not made: the object exists, and was not left to its manager.
func (r *Result) misses() bool {
	return r.Outcome.Rejection() || r.Outcome == Drifted || r.Outcome == NotTried
}

// Passes reports whether the same change may succeed later: other writers were faster, or the server was in
// trouble. A change that was held back waits for another one.
func (r *Result) Passes() bool {
	var busy *BusyError
	var rejected *RejectedError
	switch {
	case r.Outcome == Drifted, r.Outcome == NotTried, r.Outcome == Replaced, errors.As(r.Err, &busy),
		errors.Is(r.Err, errChanged):
		return true
	case errors.As(r.Err, &rejected):
		return cluster.Uncertain(context.Background(), rejected) || apierrors.IsTooManyRequests(rejected)
	}
	return false
}

// Rejection reports whether the server, or the owner of a field, opposes the change.
func (o Outcome) Rejection() bool { return o == Failed || o == Conflicted || o == Declined }

// Result is the result of one change of one object.
type Result struct {
	Key     engine.ObjectKey
	Outcome Outcome
	// Method and Reason tell how the change was, or would be, sent, and why not by server-side apply.
	Method request.Method
	Reason request.Reason
	// Changed and Removed are the fields of the request.
	Changed, Removed *fieldpath.Set
	// Touched has the changed fields: before, and as wanted; after the write as in the server's response,
	// including changes by admission and defaulting.
	Touched diff.Partial
	// Takeovers are the fields that others lost, or would lose; unknown if OwnersUnknown is set, since the
	// object records no managers.
	Takeovers     []request.Takeover
	OwnersUnknown bool
	// Difference describes how the server's response differs from the wanted object.
	Difference request.Difference
	// Drift lists the fields in which the responses to the write and to the dry run differ.
	Drift []fieldpath.Path
	// Before is the object as read. After is the object in the server's response to the write or, if nothing was
	// written, to the dry run; the wanted object if no request was sent.
	Before, After *unstructured.Unstructured
	// Version is the resourceVersion after a write, or else the one that guards a write.
	Version string
	// Retries counts how often another writer was faster.
	Retries int
	// Found reports that the response to the write was lost, and that the object was then found as wanted.
	Found bool
	// Unverified is the reason for a missing dry run, or nil.
	Unverified error
	// Err is the reason why the change was not made; an *ObjectError.
	Err error
	// Instead is the object to change instead, or empty.
	Instead string
	// Secrets are the fields derived from a Secret. If there are any, strings about the change may contain
	// secret values.
	Secrets []engine.FieldChange
	// Rules are the rules that make the change, if set by the caller.
	Rules []engine.RuleRef
	// Autoscaled names the autoscalers that set the changed fields, if set by the caller.
	Autoscaled []engine.Impact
	// Earlier reports that the result is from before the run was resumed.
	Earlier bool
	// Status is the result for /status, if the object itself has one too.
	Status *Result
}

// Tally counts the results of a run.
type Tally struct {
	Written  int // or planned, in a dry run
	Failed   int // objects that are not as wanted, for any reason
	Rejected int // of these, objects rejected by the server or an owner
	NotTried int
	// LeftAlone are the objects that the user was shown as managed by something else.
	LeftAlone int
	// Outcomes counts the results by outcome; nil if there are none.
	Outcomes map[string]int
	// Causes counts failures with causes other than the objects.
	Causes Causes
}

// Causes are temporary causes of failures, as of cluster.Cause, with the number of objects.
type Causes map[string]int

// Add counts a result.
func (c *Causes) Add(r *Result) {
	if cause := cluster.Cause(r.Err); cause != "" {
		if *c == nil {
			*c = Causes{}
		}
		(*c)[cause]++
	}
}

// String returns the causes as the suffix of a count, such as " (50: webhook x cannot be called)", or "".
func (c Causes) String() string {
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%d: %s", c[cause], cause))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// add counts a result. expected means that the user was shown the object as managed.
func (t *Tally) add(r *Result, expected bool) {
	if t.Outcomes == nil {
		t.Outcomes = map[string]int{}
	}
	t.Outcomes[string(r.Outcome)]++
	t.Causes.Add(r)
	switch {
	case r.Outcome == Applied, r.Outcome == Planned:
		t.Written++
	case r.Outcome == NotTried:
		t.NotTried++
	case r.Outcome == Managed && expected:
		t.LeftAlone++
	case r.Err != nil:
		t.Failed++
	}
	if r.Outcome.Rejection() {
		t.Rejected++
	}
	switch {
	case r.Status == nil || r.Status.Err == nil:
	case r.Status.Outcome == NotTried:
		t.NotTried++
	default:
		t.Failed++
	}
}

// Verified is a change that was planned and sent as a dry run. With the outcome Planned it can be written
// (Writer.Write); any other outcome is final.
type Verified struct {
	Result
	// JournalIndex is its index in the journal. A Verified that replaces it inherits the index.
	JournalIndex int

	patch        cluster.Patch
	want         Want
	answered     diff.Partial         // Touched in the dry run's response; zero if as wanted
	effect       diff.Partial         // all changes of the dry run; zero if equal to Touched
	serverValues []engine.FieldChange // set by the server, such as defaults
	status       *Verified            // the part for /status, if there are two
}

// setJournalIndex sets the index of the change and of its part for /status.
func (v *Verified) setJournalIndex(index int) {
	v.JournalIndex = index
	if v.status != nil {
		v.status.JournalIndex = index
	}
}

// Answered returns the changed fields with the values of the dry run's response; the wanted values without a
// dry run.
func (v *Verified) Answered() diff.Partial {
	if v.answered.Fields == nil {
		return v.Touched
	}
	return v.answered
}

// losses are the live fields to keep that the server would drop.
func (v *Verified) losses() request.Difference { return v.Difference.Of(request.Lost) }

// keepAnswer keeps the parts of the dry run's response that the write is compared with.
func (v *Verified) keepAnswer(answer *unstructured.Unstructured) {
	v.answered, v.serverValues = diff.Partial{}, nil
	if len(v.Touched.Drift(answer.Object)) > 0 {
		v.answered = v.Touched.Answered(answer) // kept only if needed: there are many objects
	}
	for _, f := range v.Difference {
		value, _ := diff.Lookup(answer.Object, f.Path)
		v.serverValues = append(v.serverValues, engine.FieldChange{Path: f.Path, To: value})
	}
}

// drift returns the fields in which the responses to the write and to the dry run differ, such as a random
// port.
func (v *Verified) drift(answer map[string]any) []fieldpath.Path {
	if v.Unverified != nil {
		return nil
	}
	out := v.Answered().Drift(answer)
	for _, f := range v.serverValues {
		if value, _ := diff.Lookup(answer, f.Path); !diff.Same(f.To, value) {
			out = append(out, f.Path)
		}
	}
	return out
}

// ObjectError is the reason why an object was not changed. A Want returns it for a failure of only this
// object; any other error ends the run.
type ObjectError struct {
	Key engine.ObjectKey
	Err error
}

// Error is "apps/Deployment shop/web: reason".
func (e *ObjectError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

// Unwrap returns the reason.
func (e *ObjectError) Unwrap() error { return e.Err }

// HeldBackError reports that an object was not written because a change that it triggers was not made: after
// the write it might no longer trigger it.
type HeldBackError struct{ Target engine.ObjectKey }

// Error names the target and the remedy.
func (e *HeldBackError) Error() string {
	return fmt.Sprintf("it triggers the change of %s, which was not made and might not be triggered any more; run again when that can be written", e.Target)
}

// ConflictError reports fields whose managers would set them back.
type ConflictError struct{ Takeovers []request.Takeover }

// Error names every field, its owner and the remedy.
func (e *ConflictError) Error() string {
	var owners, flags []string
	for _, t := range e.Takeovers {
		owners = append(owners, t.String())
		flags = append(flags, "--take-from="+t.Manager)
	}
	return fmt.Sprintf("conflict with %s; change it there, or take it over with %s (the owner will then set it back, or fail)",
		strings.Join(owners, "; "), strings.Join(engine.Distinct(flags), " "))
}

// driftError reports that another client's write made the change differ from the shown one.
func driftError(fields []fieldpath.Path) error {
	names := make([]string, len(fields))
	for i, p := range fields {
		names[i] = engine.PathString(p)
	}
	return fmt.Errorf("the object was modified in the meantime, and the change is a different one now (%s); preview it again", strings.Join(names, ", "))
}

// ManagedError reports that the object is managed elsewhere.
type ManagedError struct{ By, Source string }

// Error names the manager and the remedy.
func (e *ManagedError) Error() string {
	return fmt.Sprintf("managed by %s, which would set the change back; change %s, or write it anyway with --include-managed", e.By, e.Source)
}

// BusyError reports that other writers were faster every time.
type BusyError struct{ Attempts int }

// Error gives the number of attempts.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the object changed during each of %d attempts; run the command again", e.Attempts)
}

// RejectedError is the server's rejection of a request, redacted (redact.ServerError).
type RejectedError struct {
	Text string
	Err  error // as sent by the server; may quote secret values
}

// Error is the redacted message.
func (e *RejectedError) Error() string { return "the server rejects the change: " + e.Text }

// Unwrap returns the original, for apierrors.IsForbidden and the like.
func (e *RejectedError) Unwrap() error { return e.Err }
