package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// Outcome is what came of one change.
type Outcome string

// The outcomes.
const (
	Applied Outcome = "applied"
	// Planned: it would be applied, but the run only rehearses.
	Planned Outcome = "planned"
	// Unchanged: the object already is as wanted; nothing was sent.
	Unchanged Outcome = "unchanged"
	// ServerKeepsValue: the server would answer with the object as it is, so
	// nothing was written although something else is wanted.
	ServerKeepsValue Outcome = "server-keeps-value"
	// Deleted, Replaced and Terminating: there is no object to change any more, a
	// new one of the same name, or one that is on its way out. Skipped.
	Deleted     Outcome = "deleted"
	Replaced    Outcome = "replaced"
	Terminating Outcome = "terminating"
	// Conflicted: a field belongs to a manager that would set it back. Err is a
	// *ConflictError.
	Conflicted Outcome = "conflicted"
	// Declined: the change needs a yes of its own and did not get it. Err is a
	// *LossError, or nil where the user said no.
	Declined Outcome = "declined"
	// Drifted: somebody else has written the object, and the change is another one
	// by now, or contradicted. Err is a *DriftError, or the *plan.Drift of Want.
	Drifted Outcome = "drifted"
	// Managed: somebody else keeps the object as they want it, and the user has not
	// said that it is to be written all the same. Err is a *ManagedError.
	Managed Outcome = "managed"
	// NotTried: the run ended before it was this object's turn.
	NotTried Outcome = "not-tried"
	// Failed: the server rejected or ignored the change, or cannot be asked for it.
	Failed Outcome = "failed"
)

// Reached tells whether the object is, or would be, as wanted.
func (o Outcome) Reached() bool { return o == Applied || o == Planned || o == Unchanged }

// Rejection tells whether the server, or who owns a field, stands against the
// change.
func (o Outcome) Rejection() bool { return o == Failed || o == Conflicted || o == Declined }

// Result is what came of one change of one object.
type Result struct {
	Key     engine.ObjectKey
	Outcome Outcome
	// Method and Reason say how the change was, or would be, sent, and why it is
	// no server-side apply.
	Method request.Method
	Reason request.Reason
	// Changed and Removed are the fields of the request.
	Changed, Removed *fieldpath.Set
	// Touched is what the change touches: the object before it, and as it was
	// wanted; once it is written, as the server answered, with what admission and
	// defaulting changed besides.
	Touched diff.Partial
	// Takeovers says who lost, or would lose, which fields. It says nothing
	// where OwnersUnknown is set: the object records no managers.
	Takeovers     []request.Takeover
	OwnersUnknown bool
	// Difference is in which way the server's answer differs from what was wanted.
	Difference request.Difference
	// Drift names what the write answered other than the dry run before it.
	Drift []fieldpath.Path
	// Before is the object as it was read. After is as the server answered: to
	// the write or, when nothing was written, to the dry run; what was wanted,
	// when no request was sent at all.
	Before, After *unstructured.Unstructured
	// Retries counts how often another writer was faster.
	Retries int
	// Found tells that the answer to the write was lost, and that the object was
	// then found to be as it was to become.
	Found bool
	// Unverified says why the server could not be asked for a dry run; nil where
	// it could.
	Unverified error
	// Err says why the change was not made; an *ObjectError.
	Err error
	// Instead is the object to change instead; empty where there is none.
	Instead string
	// Rules are those that make the change, where the caller has told them.
	Rules []engine.RuleRef
	// Autoscaled says which autoscalers set the fields that change, where the caller
	// has told them.
	Autoscaled []engine.Impact
	// Status is what came of the part of the change that goes to /status, where
	// there was one beside a change of the object itself.
	Status *Result
}
