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

// Options say how to print. Only Out is required. A printer ignores options that it has no use for.
type Options struct {
	Out   io.Writer
	Color bool // of the formats for people
	// ShowSecrets prints the values of Secrets.
	ShowSecrets bool
	// Explain shows the outcome of every rule on every object, with the reason.
	Explain bool
	// GroupBy says which objects the formats for people show as one, and ListAll whether they list all their
	// names.
	GroupBy GroupBy
	ListAll bool
	// ContextLines are the Differ's.
	ContextLines int
	// Query is a JMESPath expression over the report, with JSON and YAML only. The report is then held in
	// memory.
	Query string
	// Template for a format that takes one, unless that is given as FORMAT=TEMPLATE.
	Template string
	// Context describes the run in the report. Its Namespace is the one that the user chose.
	Context Context
	// Comparer, if set, shows the differences instead of the diff format.
	Comparer *External
	// Hint returns the next command to type, with which the formats for people end; nil if they do not.
	Hint func(evaluation.Summary) Hint
	// Writes says that the run writes: its reports are about the outcome of the writes.
	Writes bool
	// Values makes a summary show the values of every field, since they are going to be written.
	Values bool
	// Compares says that the run compares two sets of policies: its reports are about their differences.
	Compares bool
	// Converts says that the run converts policies: its reports are pages with old and new policies side by
	// side.
	Converts bool
	// Tests says that the run runs tests: its reports are about their results.
	Tests bool
	// DryRun is "client" or "server" for a dry run.
	DryRun string
}

// Context describes a run in its report.
type Context struct {
	Context   string `json:"context,omitempty"` // of the kubeconfig
	Server    string `json:"server,omitempty"`
	User      string `json:"user,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Operation string `json:"operation,omitempty"`
	// Trigger is the object whose Operation is evaluated; nil for a run over all objects.
	Trigger *engine.ObjectKey `json:"trigger,omitempty"`
	Version string            `json:"version,omitempty"` // of this program
	// Time is when the state of a cluster was read, in RFC 3339; empty for manifests.
	Time string `json:"time,omitempty"`
}

// GroupBy says which objects the formats for people show as one.
type GroupBy string

// The choices. The zero value stands for ByPatch.
const (
	ByPatch  GroupBy = "patch"  // objects of one kind that change alike, wherever they are
	ByObject GroupBy = "object" // each object separately, as soon as it is known
	// like ByPatch, policy by policy: an object is listed under each policy that acts on it
	ByPolicy    GroupBy = "policy"
	ByNamespace GroupBy = "namespace" // like ByPatch, namespace by namespace
	ByCluster   GroupBy = "cluster"   // like ByPatch, cluster by cluster
)

// String implements pflag.Value.
func (g *GroupBy) String() string { return string(*g) }

// Type implements pflag.Value: it lists the choices.
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
	Fix  string // the command that makes the changes of managed objects, if that is another one
	Why  string // the command that explains why nothing changes
}

// HintCollector collects the changes of a run and returns a Hint at the end. A command is empty if it cannot
// be suggested, for instance because standard input has been read.
type HintCollector struct {
	// Apply is the command that makes the changes, with the flags of the preview.
	Apply string
	// Fix makes them in the manifests of the objects.
	Fix string
	// Explain shows the result of each rule on each object; ExplainOne on an object that no policy need match.
	Explain, ExplainOne string
	// Creates is set if Apply also makes the changes of rules for new objects.
	Creates bool
	// Namespace is the only namespace of the run; empty for all.
	Namespace string
	// Selectors are the flags that select objects, as they were typed; empty without selectors.
	Selectors string
	// Blocked is why Apply would write nothing, whatever changes; empty if it would write.
	Blocked string

	ready, created, managed, refused int // objects that would change
	controlled                       int // managed objects with an owner controller
}

// Add counts an object by what prevents its change.
func (a *HintCollector) Add(c *engine.Change) {
	switch {
	case !c.Changed(), c.Denied():
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
		return Hint{Note: "These changes happen only on creation: there is nothing to write.", Why: a.Explain}
	case s.Incomplete > 0:
		return Hint{Note: "The changes " + NotKnown(s) + ".", Why: a.Explain}
	case s.Objects == 0:
		hint := a.Chosen(s)
		hint.Why = a.ExplainOne
		return hint
	}
	return Hint{Why: a.Explain}
}

// Chosen returns a hint on what a run selected that found no object, or left all of them to their managers.
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

// NotKnown says for how many objects the changes are unknown: "are not known for 1 object: ...".
func NotKnown(s evaluation.Summary) string {
	return "are not known for " + wording.Plural(s.Incomplete, "object") + ": rules failed, were denied or are not supported"
}

// onChanges suggests the command that makes the changes, with the flag that it needs.
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
