package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare/variant"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Flags has the flags of compare.
type Flags struct {
	flags.Evaluate
	With     []string
	Variants flags.Variants
	Output   flags.Output
	Report   flags.Report
	Contexts flags.Contexts
}

// Options are the parts of a comparison.
type Options struct {
	Comparison
	Printer  output.Printer
	Reports  *formats.Reports     // included in Printer
	clusters *preview.ClusterRuns // compared instead of Comparison; nil for one cluster
	strict   bool
}

// NewCommand is `compare`: whether two sets of policies do the same.
func NewCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := Flags{Evaluate: evaluate, Output: flags.NewOutput(formats.Diff), Contexts: flags.NewContexts()}
	c := &cobra.Command{
		Use:   "compare -p OLD --with NEW [TYPE [NAME ...] | TYPE/NAME ...]",
		Short: "Compare what two sets of policies do to the same objects",
		Long: templates.LongDesc(`
			Compare what two sets of policies do to the same objects: the old ones of -p, and the
			new ones of --with. Their languages may differ.

			Both sides are evaluated on the same objects, which are read once, with the same clock
			and the same objects around them: as updated, also as created if a rule depends on
			the operation, and as deleted if a rule is for that. What counts is the object
			that comes out, as a server would read it: not the order of policies and rules, nor that
			of list elements that have keys, nor how a value is written.

			With --from-cluster, the installed policies are the side that is not given: the old
			one beside --with, the new one beside -p. With --contexts both sides are evaluated on several
			clusters, which are read side by side.

			The table at the end says for each rule how many objects it matched, was held back on, and
			changed; and of a rule that changed none, and so was not exercised, which object is missing.
			Policies of one side that have no counterpart of their name on the other are named, and so is
			where Kyverno itself would do something else than a rule says.

			Exit codes: 0 the same, 1 different, 2 nothing was compared (usage, connection, no
			policy, no object), 3 some objects, variants or policies could not be compared, or a rule failed
			on an object, or changed nothing anywhere, 130 interrupted. With --strict a warning is 3, too, and
			a rule that Kyverno derives and that changed nothing.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Does the rewritten policy do the same on all objects of the cluster?
			%[1]s compare -A -p clusterpolicy.yaml --with mutatingpolicy.yaml

			# On manifests, without a cluster
			%[1]s compare -p old/ --with new/ -f deploy/ -R

			# What changes when the installed policies give way to those of this branch?
			%[1]s compare -A --from-cluster --with policies/

			# On all clusters whose context begins with prod-
			%[1]s compare -A -p old/ --with new/ --contexts 'prod-*'

			# For a pipeline: a rule that is derived, and that no object exercises, is an error as well
			%[1]s compare -p old/ --with new/ -f deploy/ -R --strict --report junit=compare.xml`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			return process.RunE(c.Context())(f.ToOptions(c, args))
		},
	}
	f.AddInputFlags(c.Flags())
	f.AddExpandFlag(c.Flags())
	f.Contexts.AddFlags(c.Flags())
	f.Policies.AddStrictFlag(c.Flags())
	c.Flags().StringArrayVar(&f.With, "with", nil, "File, directory or URL of the new policies, or - for standard input. May be given more than once; directories are read recursively.")
	c.Flags().Lookup("policy").Usage = "File, directory or URL of the old policies, or - for standard input. May be given more than once; directories are read recursively."
	c.Flags().Lookup("from-cluster").Usage = "Use the policies that are installed in the cluster as the side that is not given: as the old ones beside --with, as the new ones beside -p."
	f.Variants.AddFlags(c.Flags(), "Also compare up to this many objects that are not there but could be: variants of the objects, and of a minimal one of each kind, that the policies themselves suggest.")
	c.Flags().Lookup("variants").NoOptDefVal = strconv.Itoa(variant.DefaultLimit)
	f.Output.AddFlags(c.Flags(), formats.Names(output.Options{Compares: true}))
	f.Report.AddFlags(c.Flags(), formats.ReportNames(output.Options{Compares: true}))
	return c
}

// sides returns the policies of the two sides.
func (f *Flags) sides() ([2]flags.Policies, error) {
	sides := [2]flags.Policies{compare.Old: f.Policies, compare.New: f.Policies}
	sides[compare.Old].FromCluster = f.Policies.FromCluster && len(f.Policies.Paths) == 0
	sides[compare.New].Paths, sides[compare.New].FromCluster = f.With, f.Policies.FromCluster && len(f.With) == 0
	given := 0
	for _, is := range []bool{len(f.Policies.Paths) > 0, len(f.With) > 0, f.Policies.FromCluster} {
		if is {
			given++
		}
	}
	if given != len(sides) {
		return sides, errors.New("a comparison has two sides: use two of -p/--policy for the old policies, --with for the new ones, and --from-cluster for those that are installed")
	}
	return sides, nil
}

// check returns the request to simulate and the policies of the two sides, or an error for flags that
// contradict each other.
func (f *Flags) check(c *cobra.Command) (engine.Request, [2]flags.Policies, error) {
	request, err := f.Objects.Request()
	if err != nil {
		return request, [2]flags.Policies{}, err
	}
	sides, err := f.sides()
	if err != nil {
		return request, sides, err
	}
	if err := f.Variants.Check(); err != nil {
		return request, sides, err
	}
	if len(f.Policies.Paths) == 0 {
		f.Policies.Paths = f.With // Validate wants policies
	}
	return request, sides,
		errors.Join(f.Output.CheckView(c.Flags()), flags.CheckFiles(c.Flags()), f.Contexts.Check(c.Flags()))
}

// ToOptions returns the options for the flags.
func (f *Flags) ToOptions(c *cobra.Command, args []string) (*Options, error) {
	request, sides, err := f.check(c)
	if err != nil {
		return nil, err
	}
	w, err := factory.OpenFleet(&f.Evaluate, &f.Contexts, f.Output.ShowSecrets, f.With...)
	if err != nil {
		return nil, err
	}
	options := w.OutputOptions(f.Output, request)
	options.Compares = true
	printer, err := formats.New(f.Output.Format, options)
	if err != nil {
		return nil, err
	}
	reports, err := w.Reports(f.Report, options, c.Flags().Changed("output"))
	if err != nil {
		return nil, err
	}
	o := &Options{Printer: reports.Beside(printer), Reports: reports, strict: f.Policies.Strict}
	if f.Contexts.Given() {
		o.clusters = f.clusters(c, w, args, request, sides)
		return o, nil
	}
	if o.Comparison, err = f.compared(c, w.Factory, args, request, sides); err != nil {
		return nil, err
	}
	w.Announce(&f.Output, o.Comparison.Options)
	return o, nil
}

// compared returns the inputs of the comparison.
func (f *Flags) compared(c *cobra.Command, w *factory.Factory, args []string, request engine.Request,
	sides [2]flags.Policies,
) (Comparison, error) {
	both, policies, err := w.Comparison(c.Context(), args, request, sides)
	return Comparison{
		Options: both, Sides: policies, Variants: f.Variants.Variants,
		Seed: f.Variants.Seed, ShowSecrets: f.Output.ShowSecrets,
	}, err
}

// Run compares, prints, and returns the exit code. An error means that nothing useful was compared, or that
// the run broke off.
func (o *Options) Run(ctx context.Context) (int, error) {
	run := o.run
	if o.clusters != nil {
		run = o.runClusters
	}
	code, err := run(ctx)
	return code, errors.Join(err, o.Reports.Discard())
}

func (o *Options) run(ctx context.Context) (int, error) {
	e, err := o.Compile()
	if err != nil {
		return process.ExitNothing, err
	}
	if unpaired := e.Unpaired(); !o.Quiet {
		for _, text := range unpaired {
			fmt.Fprintf(o.ErrOut, "note: %s\n", text)
		}
	}
	var failures wording.Reasons
	summary, err := e.Each(ctx, func(r *compare.Result) error {
		o.addFailures(&failures, r)
		return o.Printer.Print(output.Compared{Result: r, Difference: r.Difference()})
	})
	if err != nil {
		return process.Ended(err, "the comparison", summary.Objects, o.Printer)
	}
	warnings := e.Warnings()
	if !o.Quiet {
		for _, text := range warnings {
			fmt.Fprintf(o.ErrOut, "warning: %s\n", text)
		}
	}
	if err := preview.PrintProblems(o.Printer,
		slices.Concat(e.Problems(), o.tellFailures(&failures))); err != nil {
		return process.ExitIncomplete, err
	}
	if err := errors.Join(o.Printer.Print(output.Comparison{Summary: summary}), o.Printer.Close()); err != nil {
		return process.ExitIncomplete, err
	}
	code := comparedCode(&summary, o.Strict)
	if code == process.ExitOK && o.Strict && len(warnings) > 0 {
		code = process.ExitIncomplete
	}
	return code, nil
}

// addFailures adds why rules fail on an object. An object that is not comparable is shown with its reason,
// and a variant is not an object of the run.
func (o *Options) addFailures(to *wording.Reasons, r *compare.Result) {
	if !r.Failed || r.Verdict == compare.NotComparable || r.Variant != nil {
		return
	}
	seen := map[string]bool{} // several requests may fail alike
	r.Steps(o.ShowSecrets, func(side compare.Side, s *engine.Step) {
		if s.Outcome != engine.Failed {
			return
		}
		text := fmt.Sprintf("%s: %s failed: %s", side, wording.Rule(s.Rule), wording.Brief(s.Err))
		if !seen[text] {
			seen[text] = true
			to.Add(r.Subject, text)
		}
	})
}

// tellFailures prints and returns why rules fail, with the objects.
func (o *Options) tellFailures(failures *wording.Reasons) []error {
	var out []error
	for _, reason := range failures.All() {
		err := fmt.Errorf("%s: %s", reason.Names(), reason.Text)
		fmt.Fprintf(o.ErrOut, "error: %v\n", err)
		out = append(out, err)
	}
	return out
}

// comparedCode returns the exit code of a finished comparison.
func comparedCode(s *compare.Summary, strict bool) int {
	switch {
	case s.Conclusion == compare.Nothing:
		return process.ExitNothing
	case s.Problems > s.Unread, s.RuleFailed(), s.Verdicts[compare.NotComparable] > 0,
		strict && s.Unexercised() > 0:
		return process.ExitIncomplete
	case s.Conclusion == compare.SomeDiffer:
		return process.ExitChanges
	case s.Problems > 0, s.Variants.Unknown > 0, s.Conclusion == compare.NotExercised:
		return process.ExitIncomplete
	}
	return process.ExitOK
}

// clusters returns the comparisons on several clusters.
func (f *Flags) clusters(c *cobra.Command, w *factory.Fleet, args []string, request engine.Request,
	sides [2]flags.Policies,
) *preview.ClusterRuns {
	return preview.ReadClusters(w, &f.Contexts,
		func(ctx context.Context, m *factory.Member, at *factory.Factory) (_ int, err error) {
			one := &Options{Printer: m}
			if one.Comparison, err = f.compared(c, at, args, request, sides); err != nil {
				return process.ExitNothing, err
			}
			code, err := one.run(ctx)
			if end, is := m.End.(output.Comparison); is && err == nil {
				// The other clusters may have objects, and objects that exercise a rule.
				one := end.Summary
				if one.Conclusion == compare.NotExercised || one.Conclusion == compare.Nothing && one.Problems == 0 {
					one.Conclusion = compare.SameAsTested
				}
				code = comparedCode(&one, false)
			}
			return code, err
		})
}

// runClusters compares on all clusters, and returns the exit code of a comparison of all objects.
func (o *Options) runClusters(ctx context.Context) (int, error) {
	code, err := o.clusters.RunAll(ctx)
	if err != nil {
		return code, err
	}
	summary := o.clusters.Comparison()
	err = o.clusters.Show(ctx, o.Printer, func(output.Event) {}, output.Comparison{Summary: summary})
	switch {
	case process.Interrupted(err):
		return process.ExitInterrupted, err
	case err != nil:
		return process.ExitIncomplete, err
	case code == process.ExitOK || code == process.ExitChanges:
		return comparedCode(&summary, o.strict), nil
	case summary.Conclusion == compare.Nothing:
		return process.ExitNothing, nil
	}
	return code, nil
}
