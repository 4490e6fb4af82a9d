package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/intent"
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
	// Failed: the server rejected or ignored the change, or cannot be asked for it.
	Failed Outcome = "failed"
)

// Reached tells whether the object is, or would be, as wanted.
func (o Outcome) Reached() bool { return o == Applied || o == Planned || o == Unchanged }

// Result is what came of one change of one object.
type Result struct {
	Key     engine.ObjectKey
	Outcome Outcome
	// Method and Reason say how the change was, or would be, sent, and why it is
	// no server-side apply.
	Method intent.Method
	Reason intent.Reason
	// Changed and Removed are the fields of the request.
	Changed, Removed *fieldpath.Set
	// Takeovers says who lost, or would lose, which fields. It says nothing
	// where OwnersUnknown is set: the object records no managers.
	Takeovers     []intent.Takeover
	OwnersUnknown bool
	// Difference is in which way the server's answer differs from what was wanted.
	Difference intent.Difference
	// Drift names what the write answered other than the dry run before it.
	Drift []fieldpath.Path
	// Before is the object as it was read. After is as the server answered: to
	// the write or, when nothing was written, to the dry run; what was wanted,
	// when no request was sent at all.
	Before, After *unstructured.Unstructured
	// Retries counts how often another writer was faster.
	Retries int
	// Err says why the change was not made; an *ObjectError.
	Err error
	// Status is what came of the part of the change that goes to /status, where
	// there was one beside a change of the object itself.
	Status *Result
}
