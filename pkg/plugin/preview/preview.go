// Package preview has the commands that show what policies would change: preview, explain, plan show and
// summary. It also has what apply-existing, a preview that writes, shares with them: several clusters, a
// watch, metrics, and the command to type next.
package preview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Flags has the flags of preview.
type Flags struct {
	flags.Evaluate
	Output   flags.Output
	Report   flags.Report
	Contexts flags.Contexts
	Explain  bool
	MustFind bool // it is an error if none of the named objects exists
	ExitCode bool
	// SkipManaged leaves out managed objects.
	SkipManaged bool
	Save        string // the file of a plan
	Validation  string
	Watch       flags.Watch

	// Write has the flags of the apply-existing that makes the changes of the plan after a prompt; nil for a
	// preview.
	Write *flags.Write
}

// Options are the parts of a preview.
type Options struct {
	evaluate.Options
	Metrics  Metering
	Printer  output.Printer
	Reports  *formats.Reports // included in Printer
	Stored   *report.Store    // reports in the cluster; may be nil
	Hints    *output.HintCollector
	ExitCode bool // 1 when something would change
	Save     *planSaver
	// NotFound is the error of a run that finds no object; nil if that is not an error.
	NotFound error
	// End removes the temporary files of the run.
	End func() error

	Clusters *ClusterRuns // evaluated instead of Options; nil for one cluster
	saved    string       // the directory of their plans; may be empty

	// A watch prints later changes with these.
	factory  *factory.Factory
	format   string
	printing output.Options
	// incomplete is called when a rule fails on such a change.
	incomplete func()
}

// NewCommand is `preview`: what would change, without changing it.
func NewCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := Flags{
		Evaluate: evaluate, Output: flags.NewOutput(formats.Diff), Contexts: flags.NewContexts(),
		ExitCode: true,
	}
	c := &cobra.Command{
		Use:        "preview [TYPE [NAME ...] | TYPE/NAME ...]",
		SuggestFor: []string{"diff", "show", "dry-run", "check"},
		Short:      "Show what mutation policies would change on existing objects",
		Long: templates.LongDesc(`
			Show what mutation policies would change on existing objects, field by field, and
			which rule of which policy does it.

			Objects come from the live cluster: all those that the policies match in the current
			namespace, in several with --namespaces, or in all with -A; objects without a namespace are included
			unless -n is given. With -f or -k they come from manifests, and no cluster is needed. A TYPE
			is what kubectl takes: "deploy", "deployments.v1.apps", "pods,services", "all". Names,
			namespaces and selectors choose what may change: what triggers a rule that changes other
			objects is read wherever the policy says. With --contexts several clusters are read side by
			side; one that cannot be read does not hold up the others.

			Preview never writes: its connection refuses every request that could. (With --write-reports,
			a second connection writes reports on the objects, and can write nothing else.) With
			--validate=server the server tries each change in a dry run, as it does before
			apply-existing writes, and what it or its webhooks would make of the change is shown.

			The report of -o json, yaml, jsonpath and --query has summary, problems, context and
			changes[]: object, before, after, fields[] (path, kind, from, to, policy, rule), steps[]
			(policy, rule, outcome, reason) and warnings[]. docs/report.schema.json has all of it.

			With --watch it goes on, and shows what each change of the cluster makes rules do. Interrupted
			then, it ends with 0, or 3 where something was not watched or evaluated.

			Exit codes: 0 nothing would change, 1 something would, 2 nothing was evaluated
			(usage, connection, no policy, no object to read), 3 some objects or policies failed, were
			denied, are not supported or were not evaluated, as for a kind that there is not, or the
			server refused a change that it was to try, 130 interrupted. With --exit-code=false, 1
			becomes 0; with --strict, warnings about policies are 3.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What would this policy change in the current namespace?
			%[1]s preview -p policy.yaml

			# In the whole cluster, as counts per policy and rule
			%[1]s preview -A -p policies/ -o summary

			# Only these objects
			%[1]s preview deployments statefulset/db -n shop -p policy.yaml

			# For a pipeline: test results, and a comment on the change
			%[1]s preview -A -p policies/ --report junit=preview.xml --report markdown=comment.md

			# Have the server try each change, and save those that were tried for apply-existing --plan
			%[1]s preview -A -p policy.yaml --validate=server
			%[1]s preview -A -p policy.yaml --save mutate.plan

			# What would the installed policies change?
			%[1]s preview -A --from-cluster

			# On several clusters
			%[1]s preview -A -p policy.yaml --contexts staging,'prod-*'
			%[1]s preview -A -p policy.yaml --contexts staging,'prod-*' --save plans/

			# What each change of the cluster makes rules do, as it happens
			%[1]s preview -A -p policies/ --watch

			# On manifests, without a cluster
			%[1]s preview -p policy.yaml -f deploy/ -R

			# On what kustomize builds
			%[1]s preview -p policy.yaml -k overlays/prod`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			if f.Watch.On && !f.Contexts.Given() { // both together are an error
				return process.Exit(f.watch(c, args))
			}
			return process.RunE(c.Context())(f.ToOptions(c, args))
		},
	}
	f.addFlags(c.Flags())
	return c
}

func (f *Flags) addFlags(set *pflag.FlagSet) {
	f.AddFlags(set)
	f.AddExpandFlag(set)
	f.Watch.AddFlag(set, "After the run, show what each change of the cluster makes rules do, as it happens, until interrupted.")
	f.Watch.AddListenFlag(set)
	f.Contexts.AddFlags(set)
	f.Canary.AddFlags(set)
	f.Canary.AddShardFlag(set)
	f.Output.AddFlags(set, formats.Names(output.Options{}))
	f.Output.AddTemplateFlag(set)
	f.Report.AddFlags(set, formats.ReportNames(output.Options{}))
	f.Report.AddClusterFlag(set)
	set.BoolVar(&f.Explain, "explain", false, "Show the result of each rule on each object, with the reason.")
	set.BoolVar(&f.SkipManaged, "skip-managed", false, "Leave out objects that Argo CD, Flux, Helm, kapp or an owner controller manages: they count as ignored.")
	set.BoolVar(&f.ExitCode, "exit-code", f.ExitCode, "Exit with 1 when something would change.")
	flags.AddValidateFlag(set, &f.Validation, `Who checks the changes: "server" sends each as a server dry run, which takes the permission to patch; "client" holds values against the schemas of their kinds; "none" does neither. With --save it is server, else client.`)
	set.StringVar(&f.Save, "save", "", "Also save the changes as a plan, a file for apply-existing --plan without values of Secrets; with --contexts a directory with a plan for each cluster. Rules that run only when an object is created are then left out unless --operation is given.")
}

// ToOptions returns the options for the flags.
func (f *Flags) ToOptions(c *cobra.Command, args []string) (*Options, error) {
	request, err := f.check(c)
	if err != nil {
		return nil, err
	}
	w, err := factory.OpenFleet(&f.Evaluate, &f.Contexts, f.Output.ShowSecrets)
	if err != nil {
		return nil, err
	}
	external, err := w.ExternalDiff(c.Context(), f.Output.Format)
	if err != nil {
		return nil, err
	}
	options, hints := w.OutputOptions(f.Output, request), f.hints(c, args)
	hints.Namespace = options.Context.Namespace
	options.Hint, options.Explain, options.Comparer = hints.Hint, f.Explain, external
	if options.Values = f.Write != nil; f.Watch.On || f.Write != nil {
		options.Hint = nil
	}
	printer, err := formats.New(f.Output.Format, options)
	if err != nil {
		return nil, err
	}
	reports, stored, err := w.PreviewReports(c.Context(), f.Report, options, args, c.Flags().Changed("output"))
	if err != nil {
		return nil, err
	}
	o := &Options{
		Metrics: NewMetering(f.Metrics, "", c, nil), Printer: reports.Beside(printer), Reports: reports,
		Stored: stored,
		Hints:  hints, ExitCode: f.ExitCode, End: external.End,
		factory: w.Factory, format: f.Output.Format, printing: options,
	}
	if f.Contexts.Given() {
		return o, f.onClusters(c, w, args, request, o)
	}
	if err := f.evaluated(c, w.Factory, args, request, o); err != nil {
		return nil, err
	}
	w.Announce(&f.Output, &o.Options)
	return o, nil
}

// check returns the request to simulate, or an error for flags that contradict each other.
func (f *Flags) check(c *cobra.Command) (engine.Request, error) {
	request, err := f.Objects.Request()
	if err != nil {
		return request, err
	}
	var offline error
	if f.Validation == flags.ValidateServer && f.Objects.Offline() {
		offline = errors.New("--validate=server has a cluster try the changes: it cannot be used with -f/--filename or -k/--kustomize; use --validate=client")
	}
	if err := errors.Join(f.Output.CheckView(c.Flags()), flags.CheckFiles(c.Flags()),
		f.Contexts.Check(c.Flags()), f.checkSave(&request), offline,
		f.Watch.Validate(c.Flags(), &f.Evaluate, f.Output.Format, WatchFormats()...)); err != nil {
		return request, err
	}
	if f.Explain {
		return request, f.Output.CheckReasons()
	}
	return request, nil
}

// evaluated adds the inputs of the evaluation to options.
func (f *Flags) evaluated(c *cobra.Command, w *factory.Factory, args []string, request engine.Request,
	o *Options,
) error {
	evaluation, err := w.Evaluation(c.Context(), args, request)
	if err != nil {
		return err
	}
	if f.Explain {
		if err := w.Explain(evaluation, args, f.MustFind && len(args) == 0); err != nil {
			return err
		}
	}
	if f.SkipManaged {
		evaluation.Ignore = impact.Ignored
	}
	f.validate(w, evaluation)
	evaluation.Counts = o.Metrics.Run
	if f.Write != nil {
		evaluation.FieldManager = f.Write.FieldManager
	}
	o.Options = *evaluation
	if o.NotFound = w.Missing(c.Context(), evaluation); o.NotFound != nil {
		o.Hints.ExplainOne = "" // it would not find the object either
	}
	if f.MustFind {
		o.NotFound = w.NoObject()
	}
	if f.Save != "" {
		run, err := w.Recorded(c.Context(), args, evaluation)
		if err != nil {
			return err
		}
		o.Save = &planSaver{plan: plan.Plan{Run: run}, path: f.Save, quiet: f.Write != nil}
		if !f.spent() {
			o.Save.plan.Command = slices.Concat([]string{c.Name()}, args, flags.Words(c.Flags()))
		}
	}
	return nil
}

// Run evaluates, prints, and returns the exit code. An error means that nothing useful was evaluated, or
// that the run broke off.
func (o *Options) Run(ctx context.Context) (int, error) {
	run := o.run
	if o.Clusters != nil {
		run = o.runClusters
	}
	code, err := o.Metrics.Finish(run(ctx))
	return code, errors.Join(err, o.Reports.Discard(), o.End())
}

// blocked returns why apply-existing would write nothing, or "".
func (o *Options) blocked(e *evaluate.Run) string {
	switch {
	case e.Broken() > 0:
		return e.BrokenText()
	case len(o.Unread.Errs) > 0:
		return "not all that the policies depend on could be read"
	}
	return ""
}

func (o *Options) run(ctx context.Context) (int, error) {
	e, err := o.Compile()
	if err != nil {
		return process.ExitNothing, err
	}
	return o.show(ctx, e)
}

// show evaluates compiled policies and prints the results.
func (o *Options) show(ctx context.Context, e *evaluate.Run) (int, error) {
	o.Hints.Blocked = o.blocked(e)
	summary, err := e.Each(ctx, func(c *engine.Change) error {
		if c.Subject.Of != (engine.Maker{}) { // never written
			return o.Printer.Print(output.Evaluated{Change: c})
		}
		o.Hints.Add(c)
		o.Save.add(c)
		if err := o.Printer.Print(output.Evaluated{Change: c}); err != nil || c.Created == nil {
			return err
		}
		o.Hints.Add(c.Created)
		return o.Printer.Print(output.Evaluated{Change: c.Created})
	})
	if err == nil && !o.Quiet && !o.Reasons {
		if n := e.Unexpanded(ctx); n > 0 {
			fmt.Fprintf(o.ErrOut, "note: %s for Pods only, and there are workloads: --expand also evaluates the Pods that their controllers would create\n", wording.Plural(n, "rule"))
		}
	}
	if o.Hints.Blocked == "" && e.Untried() > 0 && e.Untried() == summary.Changed {
		o.Hints.Blocked = "the server could not try any of the changes"
	}
	switch {
	case err != nil:
		if m, is := o.Printer.(*factory.Member); is { // it counts the evaluated objects
			m.End = output.Summary{Summary: summary}
		}
		return process.Ended(err, "preview", summary.Objects, o.Printer)
	case summary.Objects == 0 && len(e.Unreadable()) == 0 && o.NotFound != nil:
		return process.ExitNothing, o.NotFound
	}
	if err := PrintProblems(o.Printer, e.Problems()); err != nil {
		return process.ExitIncomplete, err
	}
	o.Stored.Finds(o.blocked(e) == "" && len(e.Unreadable()) == 0 && o.MaxObjects == 0)
	if err := errors.Join(o.Printer.Print(output.Summary{Summary: summary}), o.Printer.Close()); err != nil {
		return process.ExitIncomplete, err
	}
	if err := o.Save.save(summary, e, o.ErrOut); err != nil {
		return process.ExitIncomplete, err
	}
	switch {
	case summary.Objects == 0 && len(e.Unreadable()) > 0:
		return process.ExitNothing, nil
	case e.Incomplete(summary):
		if summary.Incomplete > 0 && !formats.ForPeople(o.format) && !formats.Explains(o.format) {
			fmt.Fprintf(o.ErrOut, "error: the changes %s; -o %s shows why\n", output.NotKnown(summary), formats.Summary)
		}
		return process.ExitIncomplete, nil
	case summary.Differs() && o.ExitCode:
		return process.ExitChanges, nil
	}
	return process.ExitOK, nil
}

// checkSave checks --save. As in apply-existing, rules for new objects then run only with --operation.
func (f *Flags) checkSave(request *engine.Request) error {
	switch {
	case f.Save == "":
		return nil
	case f.Objects.Offline():
		return errors.New("--save makes a plan for a cluster: it cannot be used with -f/--filename or -k/--kustomize")
	case request.Open():
		request.Operation = engine.OperationUpdate
	}
	if f.Contexts.Given() {
		return nil // onClusters makes a directory
	}
	if err := plan.CheckFile(f.Save); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	return nil
}

// validate sets who checks the changes. A plan that is reviewed should be one that the server accepts.
func (f *Flags) validate(w *factory.Factory, o *evaluate.Options) {
	switch {
	case f.Validation == flags.ValidateServer, f.Validation == "" && f.Save != "":
		with := flags.NewWrite()
		if f.Write != nil {
			with = *f.Write
		}
		with.DryRun = string(write.DryRunServer)
		o.Validator = w.Verifier(&with)
	case f.Validation == flags.ValidateNone:
		o.Unchecked = true
	}
}

// planSaver saves a plan as a file. A nil planSaver saves nothing.
type planSaver struct {
	plan  plan.Plan
	path  string
	quiet bool
}

// add adds an object that would change, or about which there is something else to report.
func (s *planSaver) add(c *engine.Change) {
	if s == nil {
		return
	}
	if e := plan.NewEntry(c); len(e.Fields)+len(e.Steps) > 0 {
		s.plan.Entries = append(s.plan.Entries, &e)
	}
}

// save writes the plan of a finished preview.
func (s *planSaver) save(summary evaluation.Summary, r *evaluate.Run, errOut io.Writer) error {
	if s == nil {
		return nil
	}
	if r.Broken() > 0 {
		return fmt.Errorf("no plan was saved: %s", r.BrokenText())
	}
	s.plan.Summary, s.plan.Incomplete = summary, r.Incomplete(summary)
	if err := plan.Save(s.path, &s.plan); err != nil {
		return err
	}
	if !s.quiet {
		fmt.Fprintf(errOut, "Plan saved in %s\n", s.path)
	}
	return nil
}

// NewExplainCommand is `explain`: what each rule does with an object, and why. It is a preview of named
// objects with the reason of every rule.
func NewExplainCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := Flags{Evaluate: evaluate, Output: flags.NewOutput(formats.Summary), Explain: true, MustFind: true}
	c := &cobra.Command{
		Use:   "explain (TYPE/NAME ... | TYPE NAME ... | -f FILE)",
		Short: "Explain why policies change an object, or do not",
		Long: templates.LongDesc(`
			Explain what each rule of each policy does with an object, and why: which criterion of
			a match block does not hold, what it wants and what the object has; which precondition,
			anchor, path test or condition stopped the rule; which exception or exclusion applies;
			or what the rule changes.

			The object need not be one that the policies match; with -f and no name, all objects of
			the files are explained. A rule may also change it because
			of another object that the rule matches: such objects are looked for wherever the
			policy says. The flags are those of preview, and nothing is written.

			Exit codes: 0 every rule could be explained, 2 there is no such object or nothing was
			evaluated, 3 a rule failed, would be denied or is not supported, 130 interrupted.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Why does this policy leave the Deployment as it is?
			%[1]s explain deployment/web -n shop -p policy.yaml

			# Which of the installed policies act on this Pod, and what do they change?
			%[1]s explain pod/web-0 -n shop --from-cluster -o diff`, name)),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && !f.Objects.Offline() {
				return fmt.Errorf("name an object, for example: %s deployment/web -n shop -p policy.yaml", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return process.RunE(c.Context())(f.ToOptions(c, args))
		},
	}
	f.AddFlags(c.Flags())
	f.AddExpandFlag(c.Flags())
	refuseContexts(c)
	f.Output.AddFlags(c.Flags(), formats.ExplainNames())
	f.Output.AddTemplateFlag(c.Flags())
	return c
}
