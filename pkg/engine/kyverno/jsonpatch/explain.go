package jsonpatch

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Explain tells why a patch that Apply has applied to the document changed
// nothing: what each operation found, or that they undo each other.
func (p Patch) Explain(doc map[string]any, why *engine.Reasons) {
	if len(p.operations) == 0 {
		why.Add("the patch has no operations")
	}
	current, budget, wrote := doc, maxCopied, false
	for _, o := range p.operations {
		next, err := o.apply(current, &budget)
		if err != nil {
			return // the patch fails, which is more than a reason
		}
		if diff.Same(next, current) {
			why.Add("%s %s: %s", o.op, o.path, o.idle())
			continue
		}
		current, wrote = next, true
	}
	if wrote {
		why.Add("the operations undo each other")
	}
}

// idle says why the operation changes nothing where it does not.
func (o operation) idle() string {
	switch o.op {
	case opRemove:
		return "there is no such path, so that there is nothing to remove"
	case opTest:
		return "it holds, and a test changes nothing"
	}
	return "the object holds this value already"
}
