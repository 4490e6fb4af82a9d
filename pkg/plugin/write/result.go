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

// Outcome is what became of one change.
type Outcome string

// The outcomes.
const (
	Applied Outcome = "applied"
	// Planned: it would be applied, but this is a dry run.
	Planned Outcome = "planned"
	// Unchanged: the object is as wanted already; nothing was sent.
	Unchanged Outcome = "unchanged"
	// ServerKeepsValue: something else is wanted, but the server would leave the object
	// as it is; nothing was written.
	ServerKeepsValue Outcome = "server-keeps-value"
	// Deleted, Replaced and Terminating: there is no object to change any more, a
	// new one of the same name, or one that is on its way out. Skipped.
	Deleted     Outcome = "deleted"
	Replaced    Outcome = "replaced"
	Terminating Outcome = "terminating"
	// Conflicted: a field belongs to a manager that would set it back. Err is a
	// *ConflictError.
	Conflicted Outcome = "conflicted"
	// Declined: the change needs a confirmation of its own and did not get it.
	Declined Outcome = "declined"
	// Drifted: another client has written the object, and the change is a different one
	// now, or contradicted. Err may be the *plan.Drift of Want.
	Drifted Outcome = "drifted"
	// Managed: something else manages the object, and the user has not allowed to write
	// it. Err is a *ManagedError.
	Managed Outcome = "managed"
	// Ignored: the object has come to say, by engine.IgnoreAnnotation, that the rules leave it alone.
	Ignored Outcome = "ignored"
	// NotTried: the run ended before this object.
	NotTried Outcome = "not-tried"
	// Failed: the server rejected or ignored the change, or it cannot be requested.
	Failed Outcome = "failed"
)

// ShownPath returns a path of the object as it may be shown: up to a name that was made of a Secret.
func (r *Result) ShownPath(p fieldpath.Path) fieldpath.Path {
	for _, f := range r.Secrets {
		p = f.ShownPath(p)
	}
	return p
}

// Reached reports whether the object is, or would be, as wanted.
func (o Outcome) Reached() bool { return o == Applied || o == Planned || o == Unchanged }

// misses reports whether the change was to be made and was not: neither was the object gone, nor is it left
// to its manager.
func (r *Result) misses() bool {
	return r.Outcome.Rejection() || r.Outcome == Drifted || r.Outcome == NotTried
}

// Passes reports whether a change that was not made may be made when it is tried again, although nothing has
// changed: others were faster, or the server was in trouble. A change that was held back waits for another
// one.
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

// Rejection reports whether the server, or the owner of a field, stands against the
// change.
func (o Outcome) Rejection() bool { return o == Failed || o == Conflicted || o == Declined }

// Result is what became of one change of one object.
type Result struct {
	Key     engine.ObjectKey
	Outcome Outcome
	// Method and Reason say how the change was, or would be, sent, and why it is
	// no server-side apply.
	Method request.Method
	Reason request.Reason
	// Changed and Removed are the fields of the request.
	Changed, Removed *fieldpath.Set
	// Touched is what the change touches: before it, and as wanted; after the write, as
	// the server answered, with what admission and defaulting changed as well.
	Touched diff.Partial
	// Takeovers are the fields that others lost, or would lose. They are unknown if
	// OwnersUnknown is set: the object records no managers.
	Takeovers     []request.Takeover
	OwnersUnknown bool
	// Difference is in which way the server's answer differs from what was wanted.
	Difference request.Difference
	// Drift names the fields in which the write's answer differs from the dry run's.
	Drift []fieldpath.Path
	// Before is the object as it was read. After is as the server answered: to
	// the write or, when nothing was written, to the dry run; what was wanted,
	// when no request was sent at all.
	Before, After *unstructured.Unstructured
	// Version is the resourceVersion of the object after a write that was made; otherwise that by which a
	// write is guarded.
	Version string
	// Retries counts how often another writer was faster.
	Retries int
	// Found reports that the answer to the write was lost, and that the object was then
	// found to be as wanted.
	Found bool
	// Unverified is why there was no dry run; nil if there was one.
	Unverified error
	// Err is why the change was not made; an *ObjectError.
	Err error
	// Instead is the object to change instead; empty where there is none.
	Instead string
	// Secrets are the fields that were made of a Secret. Where there are any, a string about the
	// change may hold what must not be shown.
	Secrets []engine.FieldChange
	// Rules are those that make the change, if the caller has set them.
	Rules []engine.RuleRef
	// Autoscaled names the autoscalers that set the changed fields, if the caller has
	// set it.
	Autoscaled []engine.Impact
	// Earlier says that it is a result of the run before it was resumed.
	Earlier bool
	// Status is the result of the part for /status, if there is one for the object
	// itself as well.
	Status *Result
}

// Tally counts the results of a run.
type Tally struct {
	Written  int // or planned, in a dry run
	Failed   int // objects that are not as wanted, whatever the reason
	Rejected int // those of them that the server, or an owner, rejects
	NotTried int
	// LeftAlone are the objects that something else manages, as the user was shown before.
	LeftAlone int
	// Outcomes counts the results by outcome; nil if there is none.
	Outcomes map[string]int
	// Causes counts the failures that are not about the objects.
	Causes Causes
}

// Causes are for what a server does not do what may succeed later, as cluster.Cause has it, with the number
// of objects.
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

// String returns the causes to stand behind a count, such as " (50: webhook x cannot be called)"; empty
// without any.
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

// add counts a result. Expected says that the user was shown that something else manages the object.
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

// Verified is one change that was planned and sent as a dry run. With the outcome
// Planned it can be written (Writer.Write); any other outcome is final.
type Verified struct {
	Result
	// JournalIndex is its place in the journal. A Verified that replaces this one
	// inherits it.
	JournalIndex int

	patch        cluster.Patch
	want         Want
	answered     diff.Partial         // Touched, as the dry run answered; zero where that is as wanted
	effect       diff.Partial         // all that the dry run changes; zero where that is Touched
	serverValues []engine.FieldChange // that the server sets on its own, such as a default
	status       *Verified            // the part for /status, where there are two
}

// setJournalIndex sets the index of the change and of its part for /status.
func (v *Verified) setJournalIndex(index int) {
	v.JournalIndex = index
	if v.status != nil {
		v.status.JournalIndex = index
	}
}

// Answered is what the change touches, with the values of the dry run's answer; those
// that are wanted if there was no dry run.
func (v *Verified) Answered() diff.Partial {
	if v.answered.Fields == nil {
		return v.Touched
	}
	return v.answered
}

// losses are the live fields that should stay and that the server would drop.
func (v *Verified) losses() request.Difference { return v.Difference.Of(request.Lost) }

// keepAnswer keeps of the dry run's answer what the write is compared with.
func (v *Verified) keepAnswer(answer *unstructured.Unstructured) {
	v.answered, v.serverValues = diff.Partial{}, nil
	if len(v.Touched.Drift(answer.Object)) > 0 {
		v.answered = v.Touched.Answered(answer) // kept only where it is needed: there are many objects
	}
	for _, f := range v.Difference {
		value, _ := diff.Lookup(answer.Object, f.Path)
		v.serverValues = append(v.serverValues, engine.FieldChange{Path: f.Path, To: value})
	}
}

// drift returns the fields in which the answer to the write differs from that to the
// dry run, such as a port that the server picks at random.
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
		flags = append(flags, "--take-from="+t.Manager)
	}
	return fmt.Sprintf("conflict with %s; change it there, or take it over with %s (the owner will then set it back, or fail)",
		strings.Join(owners, "; "), strings.Join(engine.Distinct(flags), " "))
}

// driftError reports that another client has written the object, so that the change is
// not the one that was shown.
func driftError(fields []fieldpath.Path) error {
	names := make([]string, len(fields))
	for i, p := range fields {
		names[i] = engine.PathString(p)
	}
	return fmt.Errorf("the object was modified in the meantime, and the change is a different one now (%s); preview it again", strings.Join(names, ", "))
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
