package apply

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// Task is one object that is to be written. What is wanted of it is asked for when
// it is verified, and again when somebody else was faster; never twice at the same
// time.
type Task struct {
	Key engine.ObjectKey
	// Want says how the object should be. It keeps Entry, Rules and Propagated up to
	// date.
	Want Want
	// Entry is what the journal says of it.
	Entry plan.Entry
	// Rules are those that change the object, and Propagated those of them that
	// another object set off; each once.
	Rules, Propagated []engine.RuleRef
	// Autoscaled says which autoscalers set the fields that change.
	Autoscaled []engine.Impact
	// Reaches are the endpoints that its fields go to, as far as is known: "" for
	// the object itself, "status".
	Endpoints []string
	// Mark is its place in a journal that was taken up, and Trace what a write that
	// was begun then would have left behind; nil where there was none.
	JournalIndex int
	Pending      *journal.Attempt

	verified   *Verified
	reported   bool // there is a result
	onlyStatus bool
}

// OnlyStatus tells that all but the part for /status turned out to be stored, by
// the write that was begun.
func (t *Task) OnlyStatus() bool { return t.onlyStatus }
