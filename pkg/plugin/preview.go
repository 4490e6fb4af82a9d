package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/hints"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// PreviewFlags are what a user types after preview.
type PreviewFlags struct {
	flags.Evaluate
	Output   flags.Output
	Report   flags.Report
	Explain  bool
	MustFind bool // that there is none of the named objects is an error
	ExitCode bool
	Save     string // the file of a plan
}

// PreviewOptions are what a preview needs.
type PreviewOptions struct {
	preview.Options
	Metrics  Metering
	Masker   *redact.Masker // of the error that ends the run; nil shows everything
	Printer  output.Printer
	Reports  *formats.Set // those that Printer writes besides
	Advisor  *hints.Advisor
	ExitCode bool // 1 when something would change
	Save     *planSaver
	// NotFound is the error of a run that met no object; nil where that is none.
	NotFound error
	// End removes what the run left behind on this machine.
	End func() error
}

// NewPreviewCommand is `preview`: what would change, without changing it.
func NewPreviewCommand(evaluate flags.Evaluate, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := PreviewFlags{Evaluate: evaluate, Output: flags.NewOutput(output.Diff), ExitCode: true}
	c := &cobra.Command{
		Use:   "preview [TYPE [NAME ...] | TYPE/NAME ...]",
		Short: "Show what mutation policies would change on existing objects",
		Long: templates.LongDesc(`
			Show what mutation policies would change on existing objects, field by field, and
			which rule of which policy does it.

			Objects come from the live cluster: all those that the policies match in the current
			namespace, or in all namespaces with -A; objects without a namespace are included
			unless -n is given. With -f or -k they come from manifests, and no cluster is needed.

			Preview never writes: its connection refuses every request that could.

			Exit codes: 0 nothing would change, 1 something would, 2 nothing was evaluated
			(usage, connection, no policy), 3 some objects or policies failed, were denied or are
			not supported, 130 interrupted. With --exit-code=false, 1 becomes 0.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What would this policy change in the current namespace?
			%[1]s preview -p policy.yaml

			# In the whole cluster, as counts per policy and rule
			%[1]s preview -A -p policies/ -o summary

			# Only these objects
			%[1]s preview deployments statefulset/db -n shop -p policy.yaml

			# For a pipeline: test results, and a comment on the change
			%[1]s preview -A -p policies/ --report junit=preview.xml --report markdown=comment.md

			# What would the installed policies change?
			%[1]s preview -A --from-cluster

			# On manifests, without a cluster
			%[1]s preview -p policy.yaml -f deploy/ -R

			# On what kustomize builds
			%[1]s preview -p policy.yaml -k overlays/prod`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args, streams)
			if err != nil {
				return err
			}
			return exit(o.Run(c.Context()))
		},
	}
	f.AddFlags(c.Flags())
	f.Output.AddFlags(c.Flags(), output.Formats())
	f.Output.AddTemplateFlag(c.Flags())
	f.Report.AddFlags(c.Flags(), formats.Names())
	c.Flags().BoolVar(&f.Explain, "explain", false, "Tell of each object and rule what came of it, and precisely why.")
	c.Flags().BoolVar(&f.ExitCode, "exit-code", f.ExitCode, "Exit with 1 when something would change.")
	c.Flags().StringVar(&f.Save, "save", "", "Also save what would change as a plan, for apply-existing --plan: a file that holds no values of Secrets. Rules that run only when an object is created are then left out unless --operation is given.")
	return c
}

// ToOptions wires what was typed.
func (f *PreviewFlags) ToOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*PreviewOptions, error) {
	request, err := f.Objects.Request()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Output.CheckView(c.Flags()), flags.CheckFiles(c.Flags()), f.checkSave(c, &request)); err != nil {
		return nil, err
	}
	if f.Explain {
		if err := f.Output.CheckReasons(); err != nil {
			return nil, err
		}
	}
	w, err := factory.Open(&f.Evaluate, streams, f.Output.ShowSecrets, false)
	if err != nil {
		return nil, err
	}
	external, err := w.ExternalDiff(c.Context(), f.Output.Format)
	if err != nil {
		return nil, err
	}
	advisor := f.advisor(c, args)
	printer, reports, err := f.printer(w, c, printing{request: request, advisor: advisor, external: external})
	if err != nil {
		return nil, err
	}
	evaluation, err := w.Evaluation(c.Context(), args, request)
	if err != nil {
		return nil, w.Masker.Error(err)
	}
	w.Announce(&f.Output, evaluation)
	if f.Explain {
		if err := w.Explain(c.Context(), evaluation, args, f.MustFind); err != nil {
			return nil, err
		}
	}
	metrics := metering(f.Metrics, c)
	evaluation.Annotate, evaluation.Counts = f.Annotate, metrics.Run
	o := &PreviewOptions{
		Options: *evaluation, Metrics: metrics, Masker: w.Masker, Printer: printer, Reports: reports,
		Advisor: advisor, ExitCode: f.ExitCode, End: external.End,
	}
	if f.MustFind {
		o.NotFound = w.NoObject()
	}
	if f.Save != "" {
		o.Save, err = newPlanSaver(c.Context(), w, f.Save, args, evaluation)
	}
	return o, w.Masker.Error(err)
}

// printing is what the printers of a run depend on besides flags.
type printing struct {
	request  engine.Request
	advisor  *hints.Advisor
	external *factory.ExternalDiff
}

// printer is what shows the run, and writes the reports beside that.
func (f *PreviewFlags) printer(w *factory.Factory, c *cobra.Command, p printing) (output.Printer, *formats.Set, error) {
	options := w.RenderOptions(f.Output, p.request)
	p.advisor.Namespace = options.Context.Namespace
	options.Advise, options.Explain = p.advisor.On, f.Explain
	if p.external != nil {
		options.Comparer = p.external
	}
	shown, err := output.New(f.Output.Format, options)
	if err != nil {
		return nil, nil, err
	}
	reports, err := w.Reports(f.Report, options, c.Flags().Changed("output"))
	if err != nil {
		return nil, nil, err
	}
	return reports.Beside(shown), reports, nil
}

// Run evaluates, prints, and returns the exit code. An error means that nothing
// useful was evaluated, or that the run broke off.
func (o *PreviewOptions) Run(ctx context.Context) (int, error) {
	code, err := o.Metrics.finish(o.run(ctx))
	return code, o.Masker.Error(errors.Join(err, o.Reports.End(), o.End()))
}

func (o *PreviewOptions) run(ctx context.Context) (int, error) {
	e, err := o.Compile()
	if err != nil {
		return ExitNothing, err
	}
	o.Advisor.Broken = e.Broken()
	summary, err := e.Each(ctx, func(c *engine.Change) error {
		o.Advisor.Add(c)
		if err := o.Save.add(ctx, c); err != nil {
			return err
		}
		return o.Printer.Print(*c)
	})
	switch {
	case interrupted(err):
		return ExitInterrupted, errors.Join(&InterruptedError{Objects: summary.Objects}, output.Flush(o.Printer))
	case err != nil && summary.Objects == 0:
		return ExitNothing, err
	case err != nil:
		err = fmt.Errorf("preview broke off after %s: %w", wording.Plural(summary.Objects, "object"), err)
		return ExitIncomplete, errors.Join(err, output.Flush(o.Printer))
	case summary.Objects == 0 && len(e.Unreadable()) == 0 && o.NotFound != nil:
		return ExitNothing, o.NotFound
	}
	if err := o.Reports.Trouble(e.Problems()); err != nil {
		return ExitIncomplete, err
	}
	if err := o.Printer.Close(summary); err != nil {
		return ExitIncomplete, err
	}
	if err := o.Save.save(summary, e, o.ErrOut); err != nil {
		return ExitIncomplete, err
	}
	switch {
	case summary.Objects == 0 && len(e.Unreadable()) > 0:
		return ExitNothing, nil
	case e.Incomplete(summary):
		return ExitIncomplete, nil
	case summary.Changed > 0 && o.ExitCode:
		return ExitChanges, nil
	}
	return ExitOK, nil
}
