package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
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
	// now, or contradicted. Err is a *DriftError, or the *plan.Drift of Want.
	Drifted Outcome = "drifted"
	// Managed: something else manages the object, and the user has not allowed to write
	// it. Err is a *ManagedError.
	Managed Outcome = "managed"
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

// misses reports whether the change was to be made and was not: neither was the object gone, nor is it left to
// its manager.
func (r *Result) misses() bool {
	return r.Outcome.Rejection() || r.Outcome == Drifted || r.Outcome == NotTried
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
	// Version is the resourceVersion of the object after a write that was made.
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
	// Secrets are the fields that were made of a Secret. Where there are any, a text about the
	// change may hold what must not be shown.
	Secrets []engine.FieldChange
	// Rules are those that make the change, if the caller has set them.
	Rules []engine.RuleRef
	// Autoscaled names the autoscalers that set the changed fields, if the caller has
	// set it.
	Autoscaled []engine.Impact
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
}

// add counts a result. Expected says that the user was shown that something else manages the object.
func (t *Tally) add(r *Result, expected bool) {
	if t.Outcomes == nil {
		t.Outcomes = map[string]int{}
	}
	t.Outcomes[string(r.Outcome)]++
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
