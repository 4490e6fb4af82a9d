package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
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
	// GroupBy says which objects the formats for people show as one, and Expand
	// whether the names of all of them are listed.
	GroupBy GroupBy
	Expand  bool
	// ContextLines are those of objectdiff.Differ.
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
	Comparer Comparer
	// Hint returns the command to type next, with which the formats for people end; nil
	// for none.
	Hint func(evaluation.Summary) Hint
	// Writes says that the run writes: its reports are about the outcome of the writes.
	Writes bool
	// Compares says that the run compares two sets of policies: its reports are about their differences.
	Compares bool
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
	// Trigger is the object whose change is evaluated, with the Operation that it was; nil for a run over all objects.
	Trigger *engine.ObjectKey `json:"trigger,omitempty"`
	Version string            `json:"version,omitempty"` // of this program
	// Time is when the state of a cluster was read, in RFC 3339; empty for manifests,
	// which are the same at any time.
	Time string `json:"time,omitempty"`
}

// Comparer shows in its own way how objects differ. Add takes each object that would
// change, under kubectl's name for it; Compare then compares them all.
type Comparer interface {
	Add(name, before, after string) error
	Compare() error
}

// GroupBy says which objects the formats for people show as one.
type GroupBy string

// The choices. The zero value stands for ByPatch.
const (
	ByPatch     GroupBy = "patch"     // objects of one kind that change alike, wherever they are
	ByObject    GroupBy = "object"    // none: each object separately, as soon as it is known
	ByPolicy    GroupBy = "policy"    // like ByPatch, policy by policy: an object stands under each that acts on it
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
