package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Options say how to print. Only Out is needed. A printer ignores those that it has no
// use for.
type Options struct {
	Out   io.Writer
	Color bool // of the formats for people
	// ShowSecrets prints the values of Secrets.
	ShowSecrets bool
	// Explain shows the outcome of every rule on every object, with the reason.
	Explain bool
	// GroupBy says which objects the formats for people show as one, and ListAll
	// whether the names of all of them are listed.
	GroupBy GroupBy
	ListAll bool
	// ContextLines are those of Differ.
	ContextLines int
	// Query is a JMESPath expression over the report; with JSON and YAML only. The
	// report is then held in memory.
	Query string
	// Template is that of a format which takes one, where the format itself does not
	// name it as FORMAT=TEMPLATE.
	Template string
	// Context says in the report what was evaluated. Its Namespace is the one that the
	// user chose.
	Context Context
	// Comparer, if set, shows the differences instead of the diff format.
	Comparer *External
	// Hint returns the command to type next, with which the formats for people end; nil
	// for none.
	Hint func(evaluation.Summary) Hint
	// Writes says that the run writes: its reports are about the outcome of the writes.
	Writes bool
	// Values says that a summary shows the values of every field, since what it shows is going to be written.
	Values bool
	// Compares says that the run compares two sets of policies: its reports are about their differences.
	Compares bool
	// Converts says that the run converts policies: its reports are pages with the old ones beside the new
	// ones.
	Converts bool
	// Tests says that the run is of tests: its reports are about their results.
	Tests bool
	// DryRun is "client" or "server" if nothing is really written.
	DryRun string
}

// Context is what a report says about the run as a whole.
type Context struct {
	Context   string `json:"context,omitempty"` // of the kubeconfig
	Server    string `json:"server,omitempty"`
	User      string `json:"user,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Trigger is the object whose change is evaluated, with the Operation that it was; nil for a run over all
	// objects.
	Trigger *engine.ObjectKey `json:"trigger,omitempty"`
	Version string            `json:"version,omitempty"` // of this program
	// Time is when the state of a cluster was read, in RFC 3339; empty for manifests,
	// which are the same at any time.
	Time string `json:"time,omitempty"`
}

// GroupBy says which objects the formats for people show as one.
type GroupBy string

// The choices. The zero value stands for ByPatch.
const (
	ByPatch  GroupBy = "patch"  // objects of one kind that change alike, wherever they are
	ByObject GroupBy = "object" // none: each object separately, as soon as it is known
	// like ByPatch, policy by policy: an object stands under each that acts on it
	ByPolicy    GroupBy = "policy"
	ByNamespace GroupBy = "namespace" // like ByPatch, namespace by namespace
	ByCluster   GroupBy = "cluster"   // like ByPatch, cluster by cluster
)

// String implements pflag.Value.
func (g *GroupBy) String() string { return string(*g) }

// Type implements pflag.Value: it lists what can be typed.
func (g *GroupBy) Type() string { return "patch|object|policy|namespace|cluster" }

// Set implements pflag.Value.
func (g *GroupBy) Set(text string) error {
	switch by := GroupBy(text); by {
	case ByPatch, ByObject, ByPolicy, ByNamespace, ByCluster:
		*g = by
		return nil
	}
	return fmt.Errorf("cannot group by %q: use one of %s", text, strings.ReplaceAll(g.Type(), "|", ", "))
}

// Hint suggests the next command. Empty parts are left out.
type Hint struct {
	Note string // why a command would not do what one expects
	Next string // the command that makes the changes
	Fix  string // the command that makes those of managed objects, where it is another one
	Why  string // the command that explains why there are none
}

// HintCollector collects the changes of a run and returns a Hint at the end. A command is empty if
// it cannot be suggested, for instance because standard input has been read.
type HintCollector struct {
	// Apply is the command that makes the changes, with the flags of the preview.
	Apply string
	// Fix makes them in the manifests that the objects come from.
	Fix string
	// Explain shows the result of each rule on each object, and ExplainOne that on an object
	// that no policy need match.
	Explain, ExplainOne string
	// Creates is set if Apply also makes the changes of rules for new objects.
	Creates bool
	// Namespace is the only one that the run reads; empty for all.
	Namespace string
	// Selectors are the flags that select objects, as they were typed; empty if there are none.
	Selectors string
	// Blocked says why Apply would write nothing, whatever changes; empty if it would not.
	Blocked string

	ready, created, managed, refused, denied int // objects that would change
	controlled                               int // those of managed that another object has made
}

// Add counts an object by what prevents its change.
func (a *HintCollector) Add(c *engine.Change) {
	switch {
	case !c.Changed():
	case c.Denied():
		a.denied++
	case !a.Creates && !slices.ContainsFunc(c.Steps,
		func(s engine.Step) bool { return s.Outcome == engine.Changed && !s.AsCreated }):
		// only rules for new objects change it
		a.created++
	case c.Refused():
		a.refused++
	case c.Managed():
		if a.managed++; c.Before != nil && metav1.GetControllerOfNoCopy(c.Before) != nil {
			a.controlled++
		}
	default:
		a.ready++
	}
}

// Hint returns the hint for a run with this summary.
func (a *HintCollector) Hint(s evaluation.Summary) Hint {
	switch {
	case s.Changed+s.Created > 0:
		hint := a.onChanges()
		if hint.Next != a.Fix && len(s.Managed) > 0 {
			hint.Fix = a.Fix
		}
		return hint
	case s.Differs():
		return Hint{Note: "That changes as it is created: there is nothing to write.", Why: a.Explain}
	case s.Incomplete > 0:
		return Hint{Note: "The changes " + NotKnown(s) + ".", Why: a.Explain}
	case s.Objects == 0:
		hint := a.Chosen(s)
		hint.Why = a.ExplainOne
		return hint
	}
	return Hint{Why: a.Explain}
}

// Chosen returns what a run chose that found no object, or left alone.
func (a *HintCollector) Chosen(s evaluation.Summary) Hint {
	switch {
	case len(s.Managed) > 0:
		return Hint{Fix: a.Fix}
	case s.Objects > 0:
	case a.Selectors != "" && a.Namespace != "":
		return Hint{Note: a.Selectors + " selects no object that the policies match in namespace " + a.Namespace + "; -A chooses all namespaces."}
	case a.Selectors != "":
		return Hint{Note: a.Selectors + " selects no object that the policies match."}
	case a.Namespace != "":
		return Hint{Note: "Only objects in namespace " + a.Namespace + " were chosen; -A chooses all."}
	}
	return Hint{}
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
	case a.managed > a.controlled && a.Fix != "":
		return Hint{Note: "All of these objects are managed by a tool or controller that may revert the changes: make them in the manifests that the objects come from.", Next: a.Fix}
	case a.managed > 0:
		return Hint{Note: "All of these objects are managed by a tool or controller that may revert the changes.", Next: apply + " --include-managed"}
	case a.created > 0:
		return Hint{Note: "All of these changes come from rules that run only when an object is created.", Next: apply + " --operation=CREATE"}
	case a.refused > 0:
		return Hint{Note: "The server would refuse all of these changes: there is nothing to apply."}
	}
	return Hint{Note: "Admission would refuse all of these objects: there is nothing to apply."}
}
