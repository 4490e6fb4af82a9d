package output

import (
	"fmt"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/hints"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Options say how to print. Only Out is needed.
type Options struct {
	Out   io.Writer
	Color bool // of the formats for people
	// ShowSecrets prints Secret values as they are. Otherwise they are masked by
	// Masker, which should have seen what the policies read; a nil Masker stands
	// for one that knows the printed objects alone.
	ShowSecrets bool
	Masker      *redact.Masker
	// Explain tells of every object and rule what came of it, and why.
	Explain bool
	// GroupBy says which objects the formats for people show as one, and Expand
	// that the names of all of them are listed.
	GroupBy human.GroupBy
	Expand  bool
	// ContextLines are those of objectdiff.Differ.
	ContextLines int
	// Query is a JMESPath expression over the report; with JSON and YAML only. The
	// report is then held in memory.
	Query string
	// Template is that of a format which takes one, where the format itself does not
	// name it as FORMAT=TEMPLATE.
	Template string
	// Context says in the report what was evaluated.
	Context structured.Context
	// Comparer, where it is set, shows the differences instead of the diff format.
	Comparer human.Comparer
	// Advise says what to type next, with which the formats for people end; nil for
	// nothing.
	Hint func(engine.Summary) hints.Hint
	// DryRun is "client" or "server" where results are those of a dry run.
	DryRun string
}

func (o *Options) masker() *redact.Masker {
	switch {
	case o.ShowSecrets:
		return nil
	case o.Masker == nil:
		return &redact.Masker{}
	}
	return o.Masker
}

// checkQuery refuses a query of a format that would ignore it.
func (o *Options) checkQuery(format string) error {
	if o.Query == "" || format == JSON || format == YAML {
		return nil
	}
	return fmt.Errorf("a query works on the report: use it with -o %s or -o %s", JSON, YAML)
}

func (o *Options) human() human.Options {
	return human.Options{
		Out: o.Out, Color: human.Painter(o.Color), Masker: o.Masker, Explain: o.Explain, GroupBy: o.GroupBy, Expand: o.Expand,
		ContextLines: o.ContextLines, Namespace: o.Context.Namespace, Advise: o.Hint,
	}
}

func (o *Options) machine() structured.Options {
	return structured.Options{Out: o.Out, Masker: o.Masker, Explain: o.Explain, Context: o.Context}
}

func (o *Options) results() human.ResultOptions {
	return human.ResultOptions{Out: o.Out, Color: human.Painter(o.Color), Masker: o.Masker, DryRun: o.DryRun, Context: o.Context}
}

// NewView returns a view of single objects in which the values of Secrets are masked
// as in every format.
func NewView(o Options) *human.View {
	o.Masker = o.masker()
	return human.NewView(o.human())
}
