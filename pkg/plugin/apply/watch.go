package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// maxBatch is how many events are evaluated and written at once.
const maxBatch = 100

// watchWrites are what a watch writes later with, and those of policies as they are.
type watchWrites struct {
	*Flags
	*preview.Watcher
	command *cobra.Command
	args    []string
	by      *Options
	own     watch.Settling
}

// watch is an apply-existing that goes on.
func (f *Flags) watch(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (int, error) {
	if err := f.check(c); err != nil {
		return process.ExitNothing, err
	}
	w := preview.NewWatcher(c, &f.Evaluate, &f.Watch, maxBatch, time.Second)
	// Changes are made independently of each other: nobody is there to run it again for those that another
	// one has kept from being made.
	f.OnError, f.Options.MaxFailures, f.Options.SkipRejected = flags.ContinueOnError, 0, true
	w.Open = func() (*preview.Watched, error) {
		o, err := f.ToOptions(c, args, streams)
		if err != nil {
			return nil, err
		}
		o.Metrics, o.Counts = w.Metering, w.Metering.Run
		return (&watchWrites{Flags: f, Watcher: w, command: c, args: args, by: o}).watched()
	}
	return w.Metering.Finish(w.Watch(c, &f.Evaluate, &f.Watch, streams))
}

// watched compiles the policies of an apply-existing that goes on.
func (w *watchWrites) watched() (*preview.Watched, error) {
	o := w.by
	now := &preview.Watched{Factory: o.factory, Options: &o.Options}
	var err error
	now.Run, err = o.Compile()
	written, left := false, overtaken{}
	o.Executor.OnResult = func(t *write.Task, r *write.Result) {
		written = written || r.Outcome == write.Applied
		left.add(t.Key, r)
		w.wrote(t, r)
	}
	o.Executor.Away = w.away()
	now.All = func(ctx context.Context) (int, error) {
		code, err := o.write(ctx, now.Run)
		switch {
		case err == nil:
		case written && cluster.Uncertain(ctx, err):
			w.Report(err) // what was not tried is left
		case written:
			return code, err
		default:
			return code, preview.Retryable(ctx, err)
		}
		return code, w.again(ctx, left, func() *evaluate.Run {
			_, _, world := o.factory.Events(&o.Options, nil)
			return now.Run.Over(o.Objects, o.Triggers, world)
		})
	}
	now.Some = w.write
	return now, err
}

// wrote notes what was written.
func (w *watchWrites) wrote(t *write.Task, r *write.Result) {
	w.by.count(t, r)
	if r.Err != nil || r.Status != nil && r.Status.Err != nil {
		w.MarkIncomplete()
	}
	for _, part := range []*write.Result{r, r.Status} {
		if part != nil && part.Version != "" {
			w.own.Wrote(t.Key, part.Version)
		}
	}
}

// write makes the changes that events cause, as a run with a journal of its own.
func (w *watchWrites) write(ctx context.Context, e *evaluate.Run, events []*watch.Event) error {
	got, err := preview.EvaluateEvents(ctx, w.by.factory.Client, e)
	if err != nil {
		return err
	}
	if got.Incomplete() {
		w.MarkIncomplete()
	}
	changes := w.settled(got.Changes, events)
	w.own.Seen(events)
	left, err := w.make(ctx, e, changes, events)
	maps.DeleteFunc(left, func(k engine.ObjectKey, drifted bool) bool { // the change of which is an event itself
		return drifted && slices.ContainsFunc(events, func(e *watch.Event) bool { return e.Key.Whole() == k })
	})
	var later *watch.RetryError
	if err != nil && !errors.As(err, &later) {
		return err
	}
	return w.again(ctx, left, func() *evaluate.Run {
		objects, triggers, world := w.by.factory.Events(&w.by.Options, events)
		return e.Over(objects, triggers, world)
	})
}

// overtaken are the objects, by their names, whose changes were not made because of what others did
// meanwhile, which is true, or not tried. They are to be evaluated again.
type overtaken map[engine.ObjectKey]bool

// add adds an object if its result is such a one, and else removes it. One that is held back because of
// another one waits for that.
func (o overtaken) add(k engine.ObjectKey, r *write.Result) {
	var busy *write.BusyError
	var held *write.HeldBackError
	switch {
	case r.Outcome == write.Drifted, errors.As(r.Err, &busy):
		o[k.Whole()] = true
	case r.Outcome == write.NotTried:
		o[k.Whole()] = false
	case errors.As(r.Err, &held):
		if _, waits := o[held.Target.Whole()]; waits {
			o[k.Whole()] = false
		}
	default:
		delete(o, k.Whole())
	}
}

// maxTries is how often what was not made because of what others did meanwhile is tried again. A rule that
// makes something else each time, such as of what a service answers, would never be over.
const maxTries = 5

// again makes the changes of objects that were overtaken, and of no others: a rule that appends would append
// twice. Evaluated returns the run that finds them.
func (w *watchWrites) again(ctx context.Context, left overtaken, evaluated func() *evaluate.Run) error {
	for tries := 0; len(left) > 0; tries++ {
		if tries == maxTries {
			w.Report(fmt.Errorf("%s: it was changed while its change was to be made, %d times in a row: it is left until something changes it again", engine.Few(slices.Collect(maps.Keys(left))), tries))
			return nil
		}
		if !cluster.Pause(ctx, time.Second) {
			return nil
		}
		e := evaluated()
		got, err := preview.EvaluateEvents(ctx, w.by.factory.Client, e)
		if err == nil {
			got.Changes = slices.DeleteFunc(got.Changes, func(c *engine.Change) bool { _, is := left[c.Subject.Whole()]; return !is })
			left, err = w.make(ctx, e, got.Changes, nil)
		}
		var later *watch.RetryError
		switch {
		case errors.As(err, &later):
			tries-- // the server is away
		case err != nil:
			return err
		}
	}
	return nil
}

// make makes the changes of a run, as one with a journal of its own. It returns the objects that are to be
// evaluated again.
func (w *watchWrites) make(ctx context.Context, e *evaluate.Run, changes []*engine.Change, events []*watch.Event) (overtaken, error) {
	left := overtaken{}
	if len(changes) == 0 {
		return left, nil
	}
	o, err := w.newOptions(w.command, w.by.factory, w.by.Request)
	if err != nil {
		return nil, err
	}
	run := w.by.recorded
	run.Created, run.Seed = e.World().Now, e.World().Seed
	if o.Executor.Journal, err = NewJournal(w.by.factory, w.command, w.args, &w.Write, journal.Header{Allowed: w.Write.Options.Allowed, Run: run}); err != nil {
		return nil, err
	}
	o.Executor.OnWrite, o.Executor.Command = o.recordEvents, w.command.CommandPath()
	o.Executor.OnResult = func(t *write.Task, r *write.Result) {
		w.wrote(t, r)
		left.add(t.Key, r)
	}
	o.Executor.Away = w.away()
	if formats.ForPeople(w.Output.Format) {
		if err := preview.PrintHeading(w.by.factory.Streams.Out, events); err != nil {
			return nil, err
		}
	}
	var tasks []*write.Task
	for _, c := range changes {
		if err := o.Print(output.Evaluated{Change: c}); err != nil {
			return nil, err
		}
		if c.Changed() && !c.Denied() {
			tasks = append(tasks, write.NewTask(e, c))
			left[c.Subject.Whole()] = false
		}
	}
	if err := output.Flush(o.Shown); err != nil { // there is no summary that would end what is shown
		return nil, err
	}
	_, err = o.Executor.Run(ctx, tasks)
	if err := errors.Join(output.Flush(o.Shown), o.Shown.Close()); err != nil {
		return nil, err
	}
	if err != nil && ctx.Err() != nil {
		w.MarkIncomplete() // the others are not made
	}
	return left, preview.Retryable(ctx, err)
}

// away waits for a server that went away while writes were in flight, which it reports.
func (w *watchWrites) away() func(context.Context, error) bool {
	backoff, reported := watch.DefaultBackoff(), false
	delay := backoff.DelayFunc()
	return func(ctx context.Context, err error) bool {
		if !reported {
			w.Report(fmt.Errorf("the outcome of some writes is unknown; looking it up again: %w", err))
		}
		reported = true
		return cluster.Pause(ctx, delay())
	}
}

// settled leaves out the changes of objects that never settle, and reports each object once when it is left
// out.
func (w *watchWrites) settled(changes []*engine.Change, events []*watch.Event) []*engine.Change {
	var out []*engine.Change
	for _, c := range changes {
		var causes []engine.ObjectKey
		var rules []engine.RuleRef
		for _, s := range c.Steps {
			if s.Outcome == engine.Changed {
				causes, rules = append(causes, s.Trigger), append(rules, s.Rule)
			}
		}
		switch paused, begins := w.own.Pauses(c.Subject, causes, events); {
		case begins:
			w.Report(fmt.Errorf("%s: %s changed it %d times, each after a write of its own or right after somebody set it back: it is not written any more until the policies change",
				c.Subject, engine.Few(rules), watch.MaxWrites))
		case !paused:
			out = append(out, c)
		}
	}
	return out
}
