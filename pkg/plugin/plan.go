package plugin

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

// NewPlanCommand is `plan`: what can be done with the file that preview --save
// wrote, but for applying it.
func NewPlanCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "Look at a plan that preview saved",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPlanShowCommand(name, streams))
	return c
}

// PlanShowFlags are what a user types after plan show.
type PlanShowFlags struct {
	Output   OutputFlags
	ExitCode bool
}

// PlanShowOptions are what plan show needs.
type PlanShowOptions struct {
	Plan     *plan.Plan
	Printer  render.Printer
	ExitCode bool
	ErrOut   io.Writer
}

func newPlanShowCommand(name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := PlanShowFlags{Output: NewOutputFlags(render.Diff), ExitCode: true}
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "Show what a plan would change, without a cluster",
		Long: templates.LongDesc(`
			Show what a plan would change, as preview did when it saved the plan. No cluster is
			asked: whether the objects are still as they were is for apply-existing --plan to find
			out.

			A plan holds of each object what changes, and no values of Secrets.

			Exit codes are those of preview: 0 nothing would change, 1 something would, 2 there is
			no plan in the file, 3 some objects failed, were denied or are not supported. With
			--exit-code=false, 1 becomes 0.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What was it that I am about to approve?
			%[1]s plan show fix-images.plan

			# For a pipeline: is there anything to do?
			%[1]s plan show fix-images.plan -o json --query summary.changed`, name)),
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args[0], streams)
			if err != nil {
				return err
			}
			return exit(o.Run())
		},
	}
	f.Output.AddFlags(c, render.Formats())
	c.Flags().BoolVar(&f.ExitCode, "exit-code", f.ExitCode, "Exit with 1 when something would change.")
	return c
}

var (
	errPlanManifests = errors.New("-o manifests prints whole objects, and a plan holds of each what changes; use preview")
	errPlanSecrets   = errors.New("--show-secrets: a plan holds no values of Secrets; use preview")
)

// ToOptions reads the plan.
func (f *PlanShowFlags) ToOptions(c *cobra.Command, file string, streams genericiooptions.IOStreams) (*PlanShowOptions, error) {
	switch {
	case f.Output.Format == render.Manifests:
		return nil, errPlanManifests
	case f.Output.ShowSecrets:
		return nil, errPlanSecrets
	}
	p, err := plan.Load(file)
	if err != nil {
		return nil, err
	}
	options := f.Output.options(streams.Out)
	options.Context = render.Context{
		Context: p.Cluster.Context, Server: p.Cluster.Server, User: p.Cluster.User,
		Namespace: p.Choice.Namespace, Operation: string(p.Choice.Operation), Version: p.Version,
	}
	options.Next = planCommand(c.Root(), file)
	printer, err := render.New(f.Output.Format, options)
	if err != nil {
		return nil, err
	}
	return &PlanShowOptions{Plan: p, Printer: printer, ExitCode: f.ExitCode, ErrOut: notices{streams.ErrOut, nil}}, nil
}

// Run prints, and returns the exit code.
func (o *PlanShowOptions) Run() (int, error) {
	p := o.Plan
	fmt.Fprintf(o.ErrOut, "Made at %s by version %s for %s.\n", p.Created.UTC().Format(time.RFC3339), p.Version, p.Cluster)
	for i := range p.Entries {
		if err := o.Printer.Print(p.Entries[i].Change()); err != nil {
			return ExitIncomplete, err
		}
	}
	if err := o.Printer.Close(p.Summary); err != nil {
		return ExitIncomplete, err
	}
	switch {
	case p.Incomplete:
		return ExitIncomplete, nil
	case p.Summary.Changed > 0 && o.ExitCode:
		return ExitChanges, nil
	}
	return ExitOK, nil
}
