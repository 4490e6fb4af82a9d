package output

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Hint suggests the next command. Empty parts are left out.
type Hint struct {
	Note string // why a command would not do what one expects
	Next string // the command that makes the changes
	Why  string // the command that explains why there are none
}

// HintCollector collects the changes of a run and returns a Hint at the end. A command is empty if
// it cannot be suggested, for instance because standard input has been read.
type HintCollector struct {
	// Apply is the command that makes the changes, with the flags of the preview.
	Apply string
	// Explain shows the result of each rule on each object, and ExplainOne that on an object
	// that no policy need match.
	Explain, ExplainOne string
	// Creates is set if Apply also makes the changes of rules for new objects.
	Creates bool
	// Namespace is the only one that the run reads; empty for all.
	Namespace string
	// Blocked says why Apply would write nothing, whatever changes; empty if it would not.
	Blocked string

	ready, created, managed, refused, denied int // objects that would change
}

// Add counts an object by what prevents its change.
func (a *HintCollector) Add(c *engine.Change) {
	switch {
	case !c.Changed():
	case c.Denied():
		a.denied++
	case !a.Creates && !slices.ContainsFunc(c.Steps, func(s engine.Step) bool { return s.Outcome == engine.Changed && !s.AsCreated }):
		// only rules for new objects change it
		a.created++
	case c.Refused():
		a.refused++
	case slices.ContainsFunc(c.Impacts, func(i engine.Impact) bool { return i.Code == engine.ImpactManaged }):
		a.managed++
	default:
		a.ready++
	}
}

// Hint returns the hint for a run with this summary.
func (a *HintCollector) Hint(s evaluation.Summary) Hint {
	switch {
	case s.Changed > 0:
		return a.onChanges()
	case s.Incomplete > 0:
		return Hint{Note: "The changes " + NotKnown(s) + ".", Why: a.Explain}
	case s.Objects == 0 && a.Namespace != "":
		return Hint{Note: "Only objects in namespace " + a.Namespace + " were chosen; -A chooses all.", Why: a.ExplainOne}
	case s.Objects == 0:
		return Hint{Why: a.ExplainOne}
	}
	return Hint{Why: a.Explain}
}

// NotKnown says of how many objects the changes are not known: "are not known for 1 object: ...".
func NotKnown(s evaluation.Summary) string {
	return "are not known for " + wording.Plural(s.Incomplete, "object") + ": rules failed, were denied or are not supported"
}

// onChanges suggests the command for changes, with the flag that it needs.
func (a *HintCollector) onChanges() Hint {
	apply := a.Apply
	if a.refused > 0 {
		apply += " --skip-rejected"
	}
	switch {
	case a.Apply == "":
		return Hint{}
	case a.Blocked != "":
		return Hint{Note: "Nothing can be applied: " + a.Blocked + "."}
	case a.ready > 0 && a.refused > 0:
		return Hint{Note: "The server would refuse " + wording.Plural(a.refused, "object") + ": nothing is written unless such objects are skipped.", Next: apply}
	case a.ready > 0:
		return Hint{Next: apply}
	case a.managed > 0:
		return Hint{Note: "All of these objects are managed by a tool or controller that may revert the changes.", Next: apply + " --include-managed"}
	case a.created > 0:
		return Hint{Note: "All of these changes come from rules that run only when an object is created.", Next: apply + " --operation=CREATE"}
	case a.refused > 0:
		return Hint{Note: "The server would refuse all of these changes: there is nothing to apply."}
	}
	return Hint{Note: "Admission would refuse all of these objects: there is nothing to apply."}
}
