package apply

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// Task is one object that is to be written. Its Want is called when the object is
// verified, and again when another writer was faster; never twice at the same time.
type Task struct {
	Key engine.ObjectKey
	// Want returns how the object should be. It keeps Entry, Rules and Propagated up
	// to date.
	Want Want
	// Entry is what the journal records of it.
	Entry plan.Entry
	// Rules are those that change the object, and Propagated those of them that
	// another object triggered; each once.
	Rules, Propagated []engine.RuleRef
	// Autoscaled names the autoscalers that set the changed fields.
	Autoscaled []engine.Impact
	// Endpoints are the subresources that its fields are written to, as far as is
	// known; "" is the object itself.
	Endpoints []string
	// JournalIndex is its place in a resumed journal, and Pending the write of it whose
	// outcome that journal does not have; nil if there is none.
	JournalIndex int
	Pending      *journal.Attempt

	verified   *Verified
	reported   bool
	onlyStatus bool // the pending write of the object itself was stored: the part for /status is left
}
