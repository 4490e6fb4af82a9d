package preview

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// NewPlanCommand is `plan`: commands for the file that preview --save writes.
func NewPlanCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show plans that preview saved",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPlanShowCommand(name, streams))
	return c
}

// PlanShowFlags has the flags of plan show.
type PlanShowFlags struct {
	Output   flags.Output
	Report   flags.Report
	ExitCode bool
}

func newPlanShowCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := PlanShowFlags{Output: flags.NewOutput(formats.Diff), ExitCode: true}
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "Show what a plan would change, without a cluster",
		Long: templates.LongDesc(`
			Show what a plan would change, as preview did when it saved the plan. No cluster is
			read: apply-existing --plan checks whether the objects have drifted since, and shows the
			rules and impacts as it evaluates them then.

			A plan holds the changed fields of each object, and no values of Secrets.

			Exit codes are those of preview: 0 nothing would change, 1 something would, 2 the file
			is not a plan, 3 some objects failed, were denied or are not supported. With
			--exit-code=false, 1 becomes 0.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What am I about to approve?
			%[1]s plan show fix-images.plan

			# As a page, for those who review it
			%[1]s plan show fix-images.plan --report html=review.html

			# For a pipeline: is there anything to do?
			%[1]s plan show fix-images.plan -o json --query summary.changed`, name)),
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return process.Exit(f.run(c, args[0], streams))
		},
	}
	f.Output.AddFlags(c.Flags(), formats.Names(output.Options{}))
	f.Report.AddFlags(c.Flags(), formats.ReportNames(output.Options{}))
	f.Output.AddTemplateFlag(c.Flags())
	c.Flags().BoolVar(&f.ExitCode, "exit-code", f.ExitCode, "Exit with 1 when something would change.")
	return c
}

// run reads the plan, prints it, and returns the exit code.
func (f *PlanShowFlags) run(c *cobra.Command, file string, streams genericiooptions.IOStreams) (int, error) {
	if err := errors.Join(f.Output.CheckView(c.Flags()), flags.CheckFiles(c.Flags(), file)); err != nil {
		return process.ExitNothing, err
	}
	switch {
	case f.Output.Format == formats.Manifests:
		return process.ExitNothing, errors.New("-o manifests prints whole objects, and a plan holds only the changed fields; use preview")
	case f.Output.ShowSecrets:
		return process.ExitNothing, errors.New("--show-secrets: a plan holds no values of Secrets; use preview")
	}
	p, err := plan.Load(file)
	if err != nil {
		return process.ExitNothing, err
	}
	options := f.Output.PrinterOptions(streams.Out)
	options.Context = output.Context{
		Context: p.Cluster.Context, Server: p.Cluster.Server, User: p.Cluster.User,
		Namespace: p.Choice.Namespace, Operation: string(p.Choice.Operation), Version: p.Version,
		Time: p.Created.UTC().Format(time.RFC3339),
	}
	// a plan has only changes that --operation allowed
	next := &output.HintCollector{Apply: PlanCommand(c.Root(), file), Creates: true}
	options.Hint = next.Hint
	printer, err := formats.New(f.Output.Format, options)
	if err != nil {
		return process.ExitNothing, err
	}
	reports, err := formats.OpenReports(f.Report.Reports, formats.ReportOptions{
		Options: options, ErrOut: streams.ErrOut, StdoutTaken: c.Flags().Changed("output"),
	})
	if err != nil {
		return process.ExitNothing, err
	}
	fmt.Fprintf(redact.NewWriter(streams.ErrOut), "Made at %s by version %s for %s. Its impacts are of that time.\n", options.Context.Time, redact.EscapeLine(p.Version), p.Cluster)
	if err := p.NotEvaluated(); err != nil {
		fmt.Fprintf(redact.NewWriter(streams.ErrOut), "error: %v\n", err)
	}
	if err := errors.Join(show(p, reports.Beside(printer), next), reports.Discard()); err != nil {
		return process.ExitIncomplete, err
	}
	switch {
	case p.Incomplete:
		return process.ExitIncomplete, nil
	case p.Summary.Changed > 0 && f.ExitCode:
		return process.ExitChanges, nil
	}
	return process.ExitOK, nil
}

// show prints a plan.
func show(p *plan.Plan, printer output.Printer, hints *output.HintCollector) error {
	for _, e := range p.Entries {
		change := e.Change()
		hints.Add(&change)
		if err := printer.Print(output.Evaluated{Change: &change}); err != nil {
			return err
		}
	}
	if p.Incomplete && p.Summary.Incomplete == 0 { // reports do not show the exit code
		why := errors.New("the preview that saved this plan is incomplete: it could not read everything, or the server refused a change or did not try it")
		if err := printer.Print(output.Problem{Err: cmp.Or(p.NotEvaluated(), why)}); err != nil {
			return err
		}
	}
	return errors.Join(printer.Print(output.Summary{Summary: p.Summary}), printer.Close())
}
