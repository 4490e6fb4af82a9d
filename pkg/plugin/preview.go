package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

// PreviewFlags are what a user types after preview.
type PreviewFlags struct {
	EvaluateFlags
	Output   OutputFlags
	Reasons  bool
	ExitCode bool
}

// PreviewOptions are what a preview needs.
type PreviewOptions struct {
	EvaluateOptions
	Printer  render.Printer
	ExitCode bool // 1 when something would change
}

// NewPreviewCommand is `preview`: what would change, without changing it.
func NewPreviewCommand(evaluate EvaluateFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := PreviewFlags{EvaluateFlags: evaluate, Output: OutputFlags{Format: render.Diff}, ExitCode: true}
	c := &cobra.Command{
		Use:   "preview [TYPE | TYPE/NAME ...]",
		Short: "Show what mutation policies would change on existing objects",
		Long: templates.LongDesc(`
			Show what mutation policies would change on existing objects, field by field, and
			which rule of which policy does it.

			Objects come from the live cluster: all those that the policies match in the current
			namespace, or in all namespaces with -A; objects without a namespace are included
			unless -n is given. With -f they come from manifests, and no cluster is needed.

			Preview never writes: its connection refuses every request that could.

			Exit codes: 0 nothing would change, 1 something would, 2 nothing was evaluated
			(usage, connection, no policy), 3 some objects or policies failed, were denied or are
			not supported. With --exit-code=false, 1 becomes 0.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What would this policy change in the current namespace?
			%[1]s preview -p policy.yaml

			# In the whole cluster, as counts per policy and rule
			%[1]s preview -A -p policies/ -o summary

			# Only these objects
			%[1]s preview deployments statefulset/db -n shop -p policy.yaml

			# What would the installed policies change?
			%[1]s preview -A --from-cluster

			# On manifests, without a cluster
			%[1]s preview -p policy.yaml -f deploy/ -R`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args, streams)
			if err != nil {
				return err
			}
			return exit(o.Run(c.Context()))
		},
	}
	f.AddFlags(c)
	f.Output.AddFlags(c, render.Formats())
	c.Flags().BoolVar(&f.Reasons, "reasons", false, "Also list the rules that did not match, were skipped or left an object as it is, each with its reason.")
	c.Flags().BoolVar(&f.ExitCode, "exit-code", f.ExitCode, "Exit with 1 when something would change.")
	return c
}

// ToOptions wires what was typed.
func (f *PreviewFlags) ToOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*PreviewOptions, error) {
	request, err := f.Objects.Request()
	if err != nil {
		return nil, err
	}
	w, err := f.wire(streams, f.Output.ShowSecrets, false)
	if err != nil {
		return nil, err
	}
	options := w.renderOptions(f.Output, request)
	if !f.Objects.Offline() {
		options.Next = nextCommand(c, args)
	}
	options.Reasons = f.Reasons
	if !f.Reasons {
		options.Explain = c.CommandPath() + " --reasons"
	}
	printer, err := render.New(f.Output.Format, options)
	if err != nil {
		return nil, err
	}
	evaluate, err := w.options(c.Context(), args, request)
	if err != nil {
		return nil, w.masker.Error(err)
	}
	evaluate.Reasons, evaluate.Annotate, evaluate.Metrics = f.Reasons, f.Annotate, f.Metrics.metering(c)
	return &PreviewOptions{EvaluateOptions: *evaluate, Printer: printer, ExitCode: f.ExitCode}, nil
}

// Run evaluates, prints, and returns the exit code. An error means that nothing
// useful was evaluated, or that the run broke off.
func (o *PreviewOptions) Run(ctx context.Context) (int, error) {
	code, err := o.Metrics.finish(o.run(ctx))
	return code, o.Masker.Error(err)
}

func (o *PreviewOptions) run(ctx context.Context) (int, error) {
	e, err := o.compile()
	if err != nil {
		return ExitNothing, err
	}
	summary, err := e.each(ctx, func(c *engine.Change) error { return o.Printer.Print(*c) })
	switch {
	case err != nil && summary.Objects == 0:
		return ExitNothing, err
	case err != nil:
		return ExitIncomplete, fmt.Errorf("preview broke off after %s: %w", plural(summary.Objects, "object"), err)
	}
	if err := o.Printer.Close(summary); err != nil {
		return ExitIncomplete, err
	}
	switch {
	case summary.Objects == 0 && len(e.Unreadable()) > 0:
		return ExitNothing, nil
	case e.incomplete(summary):
		return ExitIncomplete, nil
	case summary.Changed > 0 && o.ExitCode:
		return ExitChanges, nil
	}
	return ExitOK, nil
}
