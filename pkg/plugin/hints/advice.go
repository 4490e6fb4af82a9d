package hints

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Advice is what to type next. What is empty is left out.
type Advice struct {
	Note string // what keeps a command from doing what one expects
	Next string // the command that makes the changes
	Why  string // the command that says why there are none
}

// Advisor gives advice on what a run finds: it is told of each change, and asked at
// the end. A command is empty where there is none, because standard input is read
// already for instance.
type Advisor struct {
	// Apply is the command that makes the changes, with the flags of the preview.
	Apply string
	// Explain says of each object what came of each rule, and ExplainOne says so of an
	// object that no policy may match.
	Explain, ExplainOne string
	// Creates tells that Apply also makes the changes of rules for new objects.
	Creates bool
	// Namespace is the only one that the run reads; empty for all.
	Namespace string
	// Broken counts the policies, or rules of them, that could not be compiled: nothing
	// is written then.
	Broken int

	ready, created, managed, refused, denied int // objects that would change
}

// Add counts an object by what stands in the way of its change.
func (a *Advisor) Add(c *engine.Change) {
	switch {
	case !c.Changed():
	case c.Denied():
		a.denied++
	case !a.Creates && asCreated(c):
		a.created++
	case means(c, engine.ImpactImmutable):
		a.refused++
	case means(c, engine.ImpactManaged):
		a.managed++
	default:
		a.ready++
	}
}

// asCreated tells whether all that changes an object is rules for new ones.
func asCreated(c *engine.Change) bool {
	return !slices.ContainsFunc(c.Steps, func(s engine.Step) bool { return s.Outcome == engine.Changed && !s.AsCreated })
}

func means(c *engine.Change, code engine.ImpactCode) bool {
	return slices.ContainsFunc(c.Impacts, func(i engine.Impact) bool { return i.Code == code })
}

// On gives the advice on a run of which this is the summary.
func (a *Advisor) On(s engine.Summary) Advice {
	switch {
	case s.Changed > 0:
		return a.onChanges()
	case s.Incomplete > 0:
		return Advice{Note: "What would change is not known of " + wording.Plural(s.Incomplete, "object") + ": rules failed, were denied or are not supported.", Why: a.Explain}
	case s.Objects == 0:
		return Advice{Note: a.narrowed(), Why: a.ExplainOne}
	}
	return Advice{Why: a.Explain}
}

// narrowed tells where a run that found nothing did not look.
func (a *Advisor) narrowed() string {
	if a.Namespace == "" {
		return ""
	}
	return "Only namespace " + a.Namespace + " was read; -A reads all."
}

// onChanges names the flag without which nothing would be written.
func (a *Advisor) onChanges() Advice {
	switch {
	case a.Apply == "":
		return Advice{}
	case a.Broken > 0:
		return Advice{Note: "Nothing can be applied before " + wording.Plural(a.Broken, "broken policy or rule") + " is mended, or left out with --skip."}
	case a.ready > 0:
		return Advice{Next: a.Apply}
	case a.managed > 0:
		return Advice{Note: "All of these objects are managed by something that may set them back.", Next: a.Apply + " --include-managed"}
	case a.created > 0:
		return Advice{Note: "All of these changes are of rules that run only when an object is created.", Next: a.Apply + " --operation=CREATE"}
	case a.refused > 0:
		return Advice{Note: "The server would refuse all of these changes: there is nothing to apply."}
	}
	return Advice{Note: "Admission would refuse all of these objects: there is nothing to apply."}
}
