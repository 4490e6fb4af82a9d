package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

// errWatchAsks reports that there is nobody to ask before each write.
var errWatchAsks = errors.New("--watch writes each change as it comes, and cannot ask: add --yes")

// maxBatch is how many events are evaluated and written at once.
const maxBatch = 100

// watchWrites are what a watch that writes later writes with.
type watchWrites struct {
	*ApplyFlags
	*watcher
	command *cobra.Command
	args    []string
}

// watch is an apply-existing that goes on.
func (f *ApplyFlags) watch(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (int, error) {
	if err := f.check(c); err != nil {
		return ExitNothing, err
	}
	w := &watchWrites{ApplyFlags: f, watcher: &watcher{most: maxBatch, settle: time.Second}, command: c, args: args}
	w.metering = meteringWatch(f.Metrics, f.Watch.Listen, c, w.queue.Len)
	w.open = func() (*watched, error) {
		o, err := f.ToOptions(c, args, streams)
		if err != nil {
			return nil, err
		}
		o.Metrics, o.Counts = w.metering, w.metering.Run
		now, err := w.watched(o)
		return now, o.Masker.Error(err)
	}
	code, err := w.metering.finish(w.watcher.watch(c, &f.Evaluate, &f.Watch, streams))
	if interrupted(err) {
		code = ExitInterrupted
	}
	return code, f.Secrets.Error(err)
}

// watched compiles the policies of an apply-existing that goes on.
func (w *watchWrites) watched(o *ApplyOptions) (*watched, error) {
	now := &watched{factory: o.factory, options: &o.Options, asksForOld: factory.AsksForOld(&o.Options)}
	var err error
	now.run, err = o.Compile()
	own := &watch.Settling{}
	written := false
	o.Executor.OnResult = func(t *apply.Task, r *apply.Result) {
		written = written || r.Outcome == apply.Applied
		w.wrote(o, own, t, r)
	}
	o.Executor.Away = w.away()
	now.all = func(ctx context.Context) (int, error) {
		code, err := o.write(ctx, now.run)
		if !written {
			err = retryable(ctx, err)
		}
		return code, err
	}
	now.some = func(ctx context.Context, e *preview.Run, events []*watch.Event) error {
		return w.write(ctx, o, own, e, events)
	}
	return now, err
}

// wrote notes what was written.
func (w *watchWrites) wrote(o *ApplyOptions, own *watch.Settling, t *apply.Task, r *apply.Result) {
	o.count(t, r)
	if r.Err != nil || r.Status != nil && r.Status.Err != nil {
		w.failed.Store(true)
	}
	for _, part := range []*apply.Result{r, r.Status} {
		if part != nil && part.Version != "" {
			own.Wrote(t.Key, part.Version)
		}
	}
}

// write makes the changes that events cause, as a run with a journal of its own.
func (w *watchWrites) write(ctx context.Context, by *ApplyOptions, own *watch.Settling, e *preview.Run, events []*watch.Event) error {
	got, err := act(ctx, by.factory.Client, e)
	if err != nil {
		return err
	}
	if got.incomplete() {
		w.failed.Store(true)
	}
	if got.changes, err = unmade(got.changes, events); err != nil {
		return err
	}
	got.changes = w.settled(own, got.changes, events)
	own.Seen(events)
	if len(got.changes) == 0 {
		return nil
	}
	o, err := w.newOptions(w.command, by.factory, by.Request)
	if err != nil {
		return err
	}
	run := by.recorded
	run.Created, run.Seed = e.World().Now, e.World().Seed
	if o.Executor.Journal, err = newJournal(by.factory, w.command, w.args, run, &w.Write); err != nil {
		return err
	}
	o.Executor.OnWrite, o.Executor.Command = o.recordEvents, w.command.CommandPath()
	causes := map[engine.ObjectKey][]*watch.Event{}
	o.Executor.OnResult = func(t *apply.Task, r *apply.Result) {
		w.wrote(by, own, t, r)
		if r.Outcome == apply.Applied {
			for _, e := range causes[t.Key] {
				e.Make(t.Key)
			}
		}
	}
	o.Executor.Away = w.away()
	if formats.ForPeople(w.Output.Format) {
		if err := heading(by.factory.Streams.Out, events); err != nil {
			return err
		}
	}
	var tasks []*apply.Task
	for _, c := range got.changes {
		if err := o.print(output.Evaluated{Change: c}); err != nil {
			return err
		}
		if c.Changed() && !c.Denied() {
			tasks = append(tasks, apply.NewTask(e, c))
			causes[c.Target.Key] = causesOf(c, events)
		}
	}
	if err := output.Flush(o.Shown); err != nil { // there is no summary that would end what is shown
		return err
	}
	_, err = o.Executor.Run(ctx, tasks)
	if err := errors.Join(o.Executor.Close(), output.Flush(o.Shown), o.Shown.Close()); err != nil {
		return err
	}
	var unwritable *apply.UnwritableError
	switch {
	case err != nil && ctx.Err() != nil:
		w.failed.Store(true) // the others are not made
	case err != nil && cluster.Uncertain(ctx, err):
		return &watch.RetryError{Err: err}
	case errors.As(err, &unwritable):
		return &watch.SplitError{Err: err} // the others are not held up by it
	}
	return err
}

// away waits for a server that went away while writes were in flight, which it reports.
func (w *watchWrites) away() func(context.Context, error) bool {
	backoff, reported := watch.DefaultBackoff(), false
	delay := backoff.DelayFunc()
	return func(ctx context.Context, err error) bool {
		if !reported {
			w.report(fmt.Errorf("it is open whether changes were made, trying again to look it up: %w", err))
		}
		reported = true
		return watch.Pause(ctx, delay())
	}
}

// causesOf returns the events that caused a change.
func causesOf(c *engine.Change, events []*watch.Event) []*watch.Event {
	var triggers []engine.ObjectKey
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome == engine.Changed {
			triggers = append(triggers, cmp.Or(s.Trigger, c.Subject))
		}
	}
	return watch.Causes(events, triggers)
}

// errMadeInPart is why events that changed an object are evaluated apart from others that change it as well.
var errMadeInPart = errors.New("some of the events have changed it already")

// unmade leaves out the changes that the same events have made already: rules may make another change of their result. The
// error is a *watch.SplitError where only some of the events that cause a change have.
func unmade(changes []*engine.Change, events []*watch.Event) ([]*engine.Change, error) {
	var out []*engine.Change
	for _, c := range changes {
		by, made := causesOf(c, events), 0
		for _, e := range by {
			if e.Made(c.Subject) {
				made++
			}
		}
		switch {
		case made == 0:
			out = append(out, c)
		case made < len(by):
			return nil, &watch.SplitError{Err: fmt.Errorf("%s: %w", c.Subject, errMadeInPart)}
		}
	}
	return out, nil
}

// settled leaves out the changes of objects that never settle, and reports each object once when it is left out.
func (w *watchWrites) settled(own *watch.Settling, changes []*engine.Change, events []*watch.Event) []*engine.Change {
	var out []*engine.Change
	for _, c := range changes {
		var causes []engine.ObjectKey
		var rules []engine.RuleRef
		for i := range c.Steps {
			if s := &c.Steps[i]; s.Outcome == engine.Changed {
				causes, rules = append(causes, s.Trigger), append(rules, s.Rule)
			}
		}
		switch paused, begins := own.Pauses(c.Subject, causes, events); {
		case begins:
			w.report(fmt.Errorf("%s: %s changed it %d times, each after a write of its own or right after somebody set it back: it is not written any more until the policies change",
				c.Subject, engine.Few(rules), watch.MaxWrites))
		case !paused:
			out = append(out, c)
		}
	}
	return out
}
