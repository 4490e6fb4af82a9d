// Package apply is the command apply-existing: on one cluster or several, from a plan or a journal, or as a
// watch. It also has the parts shared with undo.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Flags has the flags of apply-existing.
type Flags struct {
	WriteFlags
	flags.Record
	Contexts flags.Contexts
	Events   bool
	Watch    flags.Watch
}

// Options are the settings of apply-existing.
type Options struct {
	evaluate.Options
	Printers
	Metrics  preview.Metering
	Executor *write.Executor
	Record   *write.RecordedRun // the changes to make; nil evaluates the policies
	// the name to type before a command that is suggested; empty for one cluster of several
	program string

	// A watch makes later changes with these, and is told of each planned change.
	factory  *factory.Factory
	recorded plan.Run
	planned  func(*engine.Change) (later bool)
}

// NewCommand is `apply-existing`: it makes the changes that preview shows.
func NewCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := Flags{Record: flags.Record{PlanMaxAge: plan.DefaultMaxAge}, Contexts: flags.NewContexts(), Events: true}
	f.Evaluate, f.Write, f.Output = evaluate, flags.NewWrite(), flags.NewOutput(formats.Summary)
	c := &cobra.Command{
		Use:        preview.ApplyExisting + " [TYPE [NAME ...] | TYPE/NAME ...]",
		SuggestFor: []string{"mutate", "patch", "write"},
		Short:      "Apply the changes that preview shows, with server-side apply",
		Long: templates.LongDesc(`
			Apply the changes that preview shows, to the same objects.

			The changes are shown first. Then every object is read and evaluated again, and its
			change is tried in a server dry run; if the server rejects one, or you lack a permission,
			nothing is written. After your confirmation each object is written with one request,
			which fails if the object has changed meanwhile: with server-side apply where that can
			express the change, and a JSON patch where it cannot. A deleted object is never created
			again, and fields that another manager applied are not taken over, unless --take-from or
			--force-conflicts is given. Rules that run only when an object is created are left out
			unless --operation is given.

			Every write is recorded in a journal. --resume continues an interrupted run, and the
			command undo reverts a run.

			The report of -o json or -o yaml has context, summary (outcomes, conflicts) and
			results[]: object, outcome, method, takeovers[], notes, error and rules[].
			docs/apply-report.schema.json has all of it.

			With --contexts the changes on several clusters are shown together. After one confirmation
			they are made cluster by cluster, in the order typed, and the run stops at the first cluster
			on which not all went well, unless --on-error=continue is given.

			With --watch it goes on, and writes what each change of the cluster makes rules do.
			Interrupted then, it ends with 0, or 3 where something was not written.

			Exit codes: 0 everything was applied or there was nothing to do, 2 nothing was
			written, 3 some objects were written and some were not, 130 interrupted. What is left
			to its manager does not count.`),
		Example: templates.Examples(fmt.Sprintf(`
			# Show what would change, ask, and write
			%[1]s apply-existing -A -p policy.yaml

			# Let the server check every change, and write nothing
			%[1]s apply-existing -n shop -p policy.yaml --dry-run=server --yes

			# One object, without a prompt
			%[1]s apply-existing deployment/web -n shop -p policy.yaml --yes

			# Exactly what was previewed and reviewed
			%[1]s preview -A -p policy.yaml --save plan.json
			%[1]s apply-existing --plan plan.json

			# A part of it, and then the rest
			%[1]s apply-existing --plan plan.json -n shop --exclude deployment/web
			%[1]s apply-existing --plan plan.json

			# On several clusters: show all of them, ask once, and write to one after the other
			%[1]s apply-existing -A -p policy.yaml --contexts staging,'prod-*'

			# The same, with plans that are reviewed in between
			%[1]s preview -A -p policy.yaml --contexts staging,'prod-*' --save plans/
			%[1]s apply-existing --plan plans/

			# In batches, each after the rollouts of the previous one
			%[1]s apply-existing -A -p policy.yaml --batch-size 10 --wait

			# For a pipeline: what was written, as test results and as a comment
			%[1]s apply-existing --plan plan.json --report junit=apply.xml --report markdown=comment.md

			# Continue the run that was interrupted
			%[1]s apply-existing --resume latest`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			if f.Watch.On && !f.Contexts.Given() { // with which it is an error
				return process.Exit(f.watch(c, args))
			}
			f.Interrupts.AnnounceWrites()
			err := process.RunE(c.Context())(f.runner(c, args))
			return process.OrInterrupted(c.Context(), f.Interrupts, err)
		},
	}
	f.addFlags(c.Flags())
	return c
}

// addFlags registers the flags of apply-existing.
func (f *Flags) addFlags(set *pflag.FlagSet) {
	f.Evaluate.AddFlags(set)
	f.Watch.AddFlag(set, "After the run, write what each change of the cluster makes rules do, as it happens, until interrupted; with --yes only.")
	f.Watch.AddListenFlag(set)
	f.Contexts.AddFlags(set)
	f.Canary.AddFlags(set)
	f.Canary.AddShardFlag(set)
	for _, name := range offline { // using one is an error with advice
		set.Lookup(name).Hidden = true
	}
	f.Write.AddFlags(set)
	f.Write.AddJournalFlags(set)
	f.Record.AddFlags(set)
	f.Output.AddFlags(set, formats.Names(output.Options{Writes: true}))
	f.Report.AddFlags(set, formats.ReportNames(output.Options{Writes: true}))
	set.BoolVar(&f.Events, "events", f.Events, "Record an event PolicyApplied on each written target of a mutate-existing rule.")
}

// offline lists the flags of preview that need no cluster.
var offline = []string{"filename", "kustomize"} //nolint:gochecknoglobals // an immutable table

// errOffline reports that there is nothing to write to.
var errOffline = errors.New("apply-existing writes to a cluster: -f/--filename and -k/--kustomize work with preview only (its -o manifests prints the changed objects)")

// ToOptions returns the options for the flags.
func (f *Flags) ToOptions(c *cobra.Command, args []string) (*Options, error) {
	if err := f.check(c); err != nil {
		return nil, err
	}
	if f.Record.Given() {
		return f.recordedOptions(c, args)
	}
	request, err := f.Objects.Request()
	if err != nil {
		return nil, err
	}
	if request.Open() {
		request.Operation = engine.OperationUpdate // rules for new objects run only on request
	}
	w, err := factory.Open(&f.Evaluate, f.Output.ShowSecrets, true)
	if err != nil {
		return nil, err
	}
	o, err := f.newOptions(c, w, request)
	if err != nil {
		return nil, err
	}
	evaluation, err := w.Evaluation(c.Context(), args, request)
	if err != nil {
		return nil, err
	}
	w.Announce(&f.Output, evaluation)
	o.evaluating(c, f, evaluation)
	if f.Rehearses() {
		return o, nil
	}
	run, err := w.Recorded(c.Context(), args, evaluation)
	if err != nil {
		return nil, err
	}
	o.factory, o.recorded = w, run
	o.Executor.Journal, err = NewJournal(w, c, args, &f.Write,
		journal.Header{Allowed: f.Allowed, Run: run})
	return o, err
}

// check returns an error for flags that contradict each other.
func (f *Flags) check(c *cobra.Command) error {
	if slices.ContainsFunc(offline, c.Flags().Changed) {
		return errOffline
	}
	err := errors.Join(f.Write.Validate(), flags.CheckFiles(c.Flags()),
		f.Watch.Validate(c.Flags(), &f.Evaluate, f.Output.Format, preview.WatchFormats()...))
	if f.Watch.On && !f.Yes {
		err = errors.Join(err, errors.New("--watch writes each change as it comes, and cannot ask: add --yes"))
	}
	if f.Watch.On && c.Flags().Changed("on-error") && f.OnError == flags.StopOnError {
		err = errors.Join(err, errors.New("--on-error=stop ends a run at the first failed write, and --watch goes on: leave it out"))
	}
	return err
}

// newOptions sets the options that all sources of changes share.
func (f *Flags) newOptions(c *cobra.Command, w *factory.Factory, request engine.Request) (*Options, error) {
	o := &Options{}
	var err error
	if o.Printers, o.Executor, err = f.Writing(c, w, request); err != nil {
		return nil, err
	}
	if f.Events && !f.Rehearses() {
		o.Executor.OnWrite = (&write.EventRecorder{Create: w.Client.Create, Now: time.Now, Warn: w.Warn}).Wrote
	}
	return o, nil
}

// evaluating adds the options of evaluations.
func (o *Options) evaluating(c *cobra.Command, f *Flags, evaluation *evaluate.Options) {
	o.program = c.Root().CommandPath()
	if o.Metrics = preview.NewMetering(f.Metrics, "", c, nil); f.Cluster != nil {
		o.program = ""
		o.Metrics = preview.Metering{Run: f.Cluster.fleet.metrics.On(f.Cluster.row.Name)}
	}
	evaluation.Counts, evaluation.FieldManager = o.Metrics.Run, f.FieldManager
	o.Options, o.Executor.Command = *evaluation, c.CommandPath()
}

// Run previews, verifies, asks and writes, and returns the exit code. The error says why
// nothing, or not everything, was tried; objects that could not be written are results.
func (o *Options) Run(ctx context.Context) (int, error) {
	code, err := o.run(ctx)
	return o.Metrics.Finish(WriteReports(o.Reports, code, err))
}

func (o *Options) run(ctx context.Context) (int, error) {
	e, err := o.Compile()
	if err != nil {
		return process.ExitNothing, err
	}
	code, err := o.write(ctx, e)
	return code, errors.Join(err, preview.PrintProblems(o.Reports, e.Problems()))
}

// write makes the changes of compiled policies.
func (o *Options) write(ctx context.Context, e *evaluate.Run) (int, error) {
	if e.Broken() > 0 && (o.planned == nil || e.Broken() > e.Awaited()) { // a watch awaits kinds
		return process.ExitNothing, fmt.Errorf("nothing was written: %s", e.BrokenText())
	}
	if err := errors.Join(o.Unread.Errs...); err != nil {
		return process.ExitNothing, write.NothingWritten(err)
	}
	find := o.plan
	if o.Record != nil {
		find = o.recordedTasks
	}
	summary, err := find(ctx, e)
	if err != nil {
		return process.ExitNothing, write.NothingWritten(err)
	}
	if o.Executor.OnResult == nil {
		o.Executor.OnResult = o.count
	}
	tally, err := o.Executor.Run(ctx)
	if o.Record != nil {
		tally.Written, tally.Failed = tally.Written+o.Record.Written, tally.Failed+o.Record.Failed
	}
	code := process.WrittenCode(tally, e.Incomplete(summary) || err != nil)
	if err != nil && !o.Executor.Begun {
		code = process.ExitNothing // whatever a resumed run wrote before
	}
	if err != nil && len(tally.Outcomes) == 0 {
		return code, err // there are no results, not even an empty one
	}
	if o.Record != nil && !o.Executor.IsDryRun() {
		for _, r := range o.Record.Earlier { // the results of the whole plan
			err = errors.Join(err, o.written(r))
		}
	}
	err = errors.Join(o.Shown.Close(), err)
	if o.program != "" {
		o.suggest(tally)
	}
	return code, err
}

// suggest prints the commands that may follow a run.
func (o *Options) suggest(tally write.Tally) {
	if drifted := tally.Outcomes[string(write.Drifted)]; drifted > 0 && o.Record != nil &&
		len(o.Record.Command) > 0 {
		command := o.program
		for _, word := range o.Record.Command {
			command += " " + wording.ShellQuote(word)
		}
		fmt.Fprintf(o.Executor.ErrOut, "To plan %s again: %s\n", wording.Plural(drifted, "drifted object"),
			redact.EscapeLine(command))
	}
	if journal := o.Executor.Writer.Journal; journal != nil && tally.Written > 0 {
		fmt.Fprintf(o.Executor.ErrOut, "To undo: %s undo %s\n", o.program, wording.ShellQuote(journal.Name()))
	}
}

// plan is the preview: it prints the changes and keeps a task for each.
func (o *Options) plan(ctx context.Context, e *evaluate.Run) (evaluation.Summary, error) {
	summary, err := e.Each(ctx, func(c *engine.Change) error { return o.keep(e, c) })
	if err != nil {
		return summary, err
	}
	return summary, o.Print(output.Summary{Summary: summary})
}

// keep prints a change, and keeps a task for it unless admission would deny it.
func (o *Options) keep(e *evaluate.Run, c *engine.Change) error {
	later := o.planned != nil && o.planned(c)
	if c.Changed() && !c.Denied() && !later {
		o.Executor.Keep(write.NewTask(e, c), c)
	}
	return o.Print(output.Evaluated{Change: c})
}

// recordedTasks keeps a task for each planned change, and prints the change as it is evaluated now.
func (o *Options) recordedTasks(ctx context.Context, e *evaluate.Run) (evaluation.Summary, error) {
	failed := o.Record.Tasks(ctx, e, &o.Executor.Queue)
	if n := o.Record.LeftOut; n > 0 {
		fmt.Fprintf(o.Executor.ErrOut, "%s of the plan left for another run\n", wording.Plural(n, "change"))
	}
	shown, err := o.Record.Each(e.Rules(), func(c *engine.Change) error {
		return o.Print(output.Evaluated{Change: c})
	})
	if err == nil {
		err = o.Print(output.Summary{Summary: shown})
	}
	return shown, errors.Join(failed, err)
}

// count adds the outcome of one object to the metrics of the run.
func (o *Options) count(t *write.Task, r *write.Result) { o.Metrics.Written(r, t.Rules) }

// recordedOptions returns the options of a run that a plan or a journal describes.
func (f *Flags) recordedOptions(c *cobra.Command, args []string) (_ *Options, err error) {
	if f.Cluster == nil || !f.Cluster.shown { // otherwise the plan was made with these flags
		if err := f.Record.Check(c.Flags(), args, false); err != nil {
			return nil, err
		}
	}
	f.Policies.Recorded = true
	if f.Resume != "" {
		var err error
		if f.Resume, err = journal.Find(f.Resume, flags.CurrentContext(f.Config),
			(*journal.Run).Resumable); err != nil {
			return nil, err
		}
		if err := flags.CheckFiles(c.Flags(), f.Resume); err != nil {
			return nil, err
		}
	}
	w, err := factory.Open(&f.Evaluate, f.Output.ShowSecrets, true)
	if err != nil {
		return nil, err
	}
	if f.Cluster != nil {
		if err := w.Client.Answers(c.Context()); err != nil {
			return nil, err
		}
	}
	run, resumed, err := f.load(c, w)
	if err != nil {
		return nil, err
	}
	if f.Plan != "" && f.Cluster == nil {
		if err := choose(w, args, run); err != nil {
			return nil, fmt.Errorf("nothing was written: %s: %w", run.Name, err)
		}
	}
	evaluation, err := w.Repeat(c.Context(), &run.Run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", run.Name, err)
	}
	o, err := f.newOptions(c, w, evaluation.Request)
	if err != nil {
		return nil, err
	}
	o.evaluating(c, f, evaluation)
	o.Record = run
	o.Executor.Prompt.Confirmed = f.Plan != "" || f.Cluster != nil // reviewed, or confirmed with the other clusters
	switch {
	case f.Rehearses():
	case resumed != nil:
		o.Executor.ResumeJournal(resumed)
	default:
		o.Executor.Journal, err = NewJournal(w, c, args, &f.Write,
			journal.Header{Allowed: f.Allowed, Run: run.Run})
	}
	return o, err
}

// choose keeps the part of a plan that the arguments select. A name is found in all namespaces if only one
// has it.
func choose(w *factory.Factory, args []string, run *write.RecordedRun) error {
	scope, err := w.Part(args)
	if err != nil || scope.Whole() {
		return err
	}
	kept := run.Keep(scope)
	for _, typed := range scope.Only {
		var in []string
		for _, k := range kept {
			if k.GroupKind == typed.GroupKind && (typed.Name == "" || typed.Name == k.Name) {
				in = append(in, k.Namespace)
			}
		}
		switch what := strings.TrimSpace(typed.String()); {
		case len(in) == 0:
			return fmt.Errorf("it has no change of %s", what)
		case len(in) > 1 && typed.Name != "" && !w.NamespacesTyped() && !w.Objects.AllNamespaces:
			return fmt.Errorf("it changes %s in the namespaces %s: choose one with -n, some with --namespaces, or all with -A", what, strings.Join(in, ", "))
		}
	}
	if len(kept) == 0 {
		return errors.New("it has no change of an object that was chosen")
	}
	return nil
}

// load reads the plan or journal, and checks that it can be applied to this cluster now. The writer continues
// a journal.
func (f *Flags) load(c *cobra.Command, w *factory.Factory) (*write.RecordedRun, *journal.Writer, error) {
	if f.Plan != "" {
		p, err := plan.LoadOwn(f.Plan)
		if err == nil {
			err = p.NotEvaluated()
		}
		if err == nil {
			err = w.CheckRun(c.Context(), &p.Run, f.PlanMaxAge)
		}
		var undone map[engine.ObjectKey]bool
		if err == nil {
			undone, err = journal.Undone(&p.Run, func(_ string, err error) { w.Warn(err) })
		}
		if err != nil {
			return nil, nil, fmt.Errorf("nothing was written: %w", err)
		}
		run := write.FromPlan(p, f.Plan)
		if left := run.LeaveOut(undone); len(left) > 0 {
			fmt.Fprintf(w.Streams.ErrOut, "This plan was applied before, and %s undone since, left alone: %s. Make a new plan to change them\n",
				wording.Plural(len(left), "object"), engine.Few(left))
		}
		return run, nil, nil
	}
	return f.resume(c, w)
}

// resume opens the journal of an interrupted run, and prints its progress.
func (f *Flags) resume(c *cobra.Command, w *factory.Factory) (*write.RecordedRun, *journal.Writer, error) {
	if c.Flags().Changed("journal") {
		return nil, nil, errors.New("--journal cannot be used with --resume, which continues the journal that it names")
	}
	var j *journal.Journal
	var writer *journal.Writer
	var err error
	if f.Rehearses() { // a dry run does not write to it
		j, err = journal.Read(f.Resume)
	} else {
		j, writer, err = journal.Resume(f.Resume)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := f.mayResume(c, w, j); err != nil {
		return nil, nil, err
	}
	f.FieldManager = j.Header.FieldManager
	f.Allow(j.Header.Allowed)
	if writer != nil {
		if err := writer.Resumed(journal.Resumed{Version: process.Release(), Arguments: typed(c,
			nil)}); err != nil {
			return nil, nil, err
		}
	}
	counts := j.Count()
	fmt.Fprintf(w.Streams.ErrOut, "Resuming: %d done, %d failed, %d started with unknown outcome, %d not started\n",
		counts[journal.Done], counts[journal.Failed], counts[journal.InDoubt]+counts[journal.Partial],
		counts[journal.Planned])
	if options := originalOptions(&j.Header); options != "" {
		fmt.Fprintf(w.Streams.ErrOut, "With the options of the original run: %s\n", redact.EscapeLine(options))
	}
	return write.FromJournal(j), writer, nil
}

// originalOptions returns the flags that a resumed run takes over, as typed.
func originalOptions(h *journal.Header) string {
	var options []string
	if allowed := h.Allowed.String(); allowed != "" {
		options = append(options, allowed)
	}
	if h.FieldManager != write.DefaultFieldManager {
		options = append(options, "--field-manager="+h.FieldManager)
	}
	if h.Secrets {
		options = append(options, "--journal-secrets")
	}
	return strings.Join(options, " ")
}

// mayResume returns an error if a journal cannot be resumed on this cluster with the user's flags.
func (f *Flags) mayResume(c *cobra.Command, w *factory.Factory, j *journal.Journal) error {
	switch {
	case !j.Begun:
		return fmt.Errorf("journal %s: that run was interrupted before its first write: there is nothing to resume, run the command again", j.Path)
	case j.Header.Command != preview.ApplyExisting:
		return fmt.Errorf("journal %s is of the command %s: run that command again instead, it continues where it was", j.Path, j.Header.Command)
	case c.Flags().Changed("field-manager") && f.FieldManager != j.Header.FieldManager:
		return fmt.Errorf("--field-manager %s: the resumed run writes as %s", f.FieldManager, j.Header.FieldManager)
	}
	if err := w.CheckRun(c.Context(), &j.Header.Run, 0); err != nil {
		return fmt.Errorf("journal %s: %w", j.Path, err)
	}
	return nil
}
