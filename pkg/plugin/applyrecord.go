package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
)

// RecordFlags name a record of what is to be written.
type RecordFlags struct {
	Plan       string
	PlanMaxAge time.Duration
	Resume     string
}

// NewRecordFlags returns the defaults.
func NewRecordFlags() RecordFlags { return RecordFlags{PlanMaxAge: plan.DefaultMaxAge} }

// AddFlags registers the flags.
func (f *RecordFlags) AddFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.Plan, "plan", "", "Make exactly the changes of this plan, which preview --save has written, and ask nothing. An object that has drifted from it is left as it is.")
	flags.DurationVar(&f.PlanMaxAge, "plan-max-age", f.PlanMaxAge, "How old the plan may be.")
	flags.StringVar(&f.Resume, "resume", "", "Go on with the run that this journal is of, which was cut off.")
}

func (f *RecordFlags) recorded() bool { return f.Plan != "" || f.Resume != "" }

// settled are the flags that a record has settled: to type one beside it can only
// be a mistake.
var settled = []string{ //nolint:gochecknoglobals // an immutable table
	"policy", "from-cluster", "only", "skip", "values", "all-namespaces", "selector", "field-selector",
	"operation", "request-user", "request-group", "annotate", "namespace",
}

// check refuses what a record has settled.
func (f *RecordFlags) check(c *cobra.Command, args []string) error {
	name := "--plan"
	if f.Resume != "" {
		name = "--resume"
	}
	if f.Plan != "" && f.Resume != "" {
		return errors.New("--plan begins a run and --resume goes on with one: choose one of them")
	}
	if len(args) > 0 {
		return fmt.Errorf("%s: what is written is what was planned; leave out %q", name, args[0])
	}
	var err error
	c.Flags().Visit(func(flag *pflag.Flag) {
		if slices.Contains(settled, flag.Name) && err == nil {
			err = fmt.Errorf("%s: what is written is what was planned; leave out --%s", name, flag.Name)
		}
	})
	return err
}

// recordedRun is a run whose changes are known before it is evaluated.
type recordedRun struct {
	plan.Run
	name    string // for messages: "plan FILE"
	entries []recordedEntry
	masker  *secret.Masker
	// summary is what was evaluated when a plan was made; nil counts what is shown.
	summary *engine.Summary
	// written and failed count what came of the others already.
	written, failed int
}

// recordedEntry is an object that is still to be written.
type recordedEntry struct {
	plan.Entry
	mark int
	// attempted tells that a write was begun whose outcome nobody knows, and of
	// which a fresh evaluation has the last word.
	attempted bool
	// trace is what a write whose outcome is not known would have left behind.
	trace *journal.Attempt
}

// recordedOptions wires a run that a plan or a journal describes.
func (f *ApplyFlags) recordedOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*ApplyOptions, error) {
	if err := f.RecordFlags.check(c, args); err != nil {
		return nil, err
	}
	f.Policies.recorded = true
	w, err := f.wire(streams, f.Output.ShowSecrets, true)
	if err != nil {
		return nil, err
	}
	run, resumed, err := f.load(c, w)
	if err != nil {
		return nil, w.masker.Error(err)
	}
	evaluate, err := w.repeat(c.Context(), &run.Run)
	if err != nil {
		return nil, w.masker.Error(fmt.Errorf("%s: %w", run.name, err))
	}
	o, err := f.newOptions(w, evaluate.Request)
	if err != nil {
		return nil, err
	}
	o.evaluating(c, f, evaluate)
	o.Record = run
	o.Executor.Agreed = true
	o.Executor.tally.earlier.written, o.Executor.tally.earlier.failed = run.written, run.failed
	switch {
	case f.rehearses():
	case resumed != nil:
		o.Executor.keep(resumed)
	default:
		o.Executor.Journal, err = w.newJournal(c, args, &f.WriteFlags, run.Run)
	}
	return o, err
}

// load reads the record, and makes sure that it may be taken up here and now. The
// writer is that of a journal.
func (f *ApplyFlags) load(c *cobra.Command, w *wiring) (*recordedRun, *journal.Writer, error) {
	if f.Plan != "" {
		run, err := loadPlan(f.Plan, w)
		if err == nil {
			err = w.checkRun(c.Context(), &run.Run, f.PlanMaxAge)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("nothing was written: %w", err)
		}
		return run, nil, nil
	}
	return f.resume(c, w)
}

func loadPlan(path string, w *wiring) (*recordedRun, error) {
	p, err := plan.Load(path)
	if err != nil {
		return nil, err
	}
	run := &recordedRun{Run: p.Run, name: "plan " + path, masker: w.secrets, summary: &p.Summary}
	for _, e := range p.Entries {
		run.entries = append(run.entries, recordedEntry{Entry: e})
	}
	return run, nil
}

// recordedTasks shows what was planned, and makes tasks of it. The policies are
// evaluated over the same objects again, because an entry is written only if they
// still make the same change, and because it lacks the values of Secrets.
func (o *ApplyOptions) recordedTasks(ctx context.Context, e *evaluation) ([]*task, engine.Summary, error) {
	shown := engine.NewSummary(e.rules)
	planned := map[engine.ObjectKey]bool{}
	for i := range o.Record.entries {
		c := o.Record.entries[i].Change()
		shown.Add(&c)
		planned[c.Subject.Named()] = true
		if err := o.Preview.Print(c); err != nil {
			return nil, *shown, err
		}
	}
	if o.Record.summary != nil {
		shown = o.Record.summary
	}
	if err := o.Preview.Close(*shown); err != nil {
		return nil, *shown, err
	}
	now := map[engine.ObjectKey]*evaluated{}
	_, err := e.each(ctx, func(c *engine.Change) error {
		if key := c.Subject.Named(); planned[key] {
			now[key] = newEvaluated(e, c)
		}
		return nil
	})
	var tasks []*task
	for i := range o.Record.entries {
		if entry := &o.Record.entries[i]; entry.Writes() {
			tasks = append(tasks, o.Record.task(entry, now[entry.Object.Key().Named()]))
		}
	}
	return tasks, *shown, err
}

// task makes what was planned of one object, unless it has drifted. What the
// evaluation has not met again is nil.
func (r *recordedRun) task(entry *recordedEntry, now *evaluated) *task {
	if now == nil {
		now = &evaluated{}
	}
	t := &now.task
	t.key, t.mark, t.trace, t.entry = entry.Object.Key(), entry.mark, entry.trace, entry.Entry
	planned := entry.Change()
	t.reaches = reaches(&planned)
	t.want = func(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		c := &engine.Change{Subject: t.key, Before: live, After: live}
		if now.evaluation != nil {
			now.key, now.incomplete = t.key, entry.Incomplete()
			var err error
			if c, err = now.again(ctx, live); err != nil {
				return nil, err
			}
		}
		if entry.attempted && !c.Changed() {
			return live, nil
		}
		planned := entry.Entry
		if t.statusLeft {
			planned = statusOf(planned)
		}
		if drift := planned.Drift(c, r.masker); drift != nil {
			return nil, drift
		}
		t.entry = plan.NewEntry(c)
		t.rules, t.propagated = changing(c)
		return c.After, nil
	}
	return t
}
