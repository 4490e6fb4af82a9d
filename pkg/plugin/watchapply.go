package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

// errWatchStops reports that a watch is not to go on.
var errWatchStops = errors.New("--on-error=stop ends a run at the first failed write, and --watch goes on: leave it out")

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
	w.goOn()
	w.metering = meteringWatch(f.Metrics, f.Watch.Listen, c, w.queue.Len)
	w.open = func() (*watched, error) {
		o, err := f.ToOptions(c, args, streams)
		if err != nil {
			return nil, err
		}
		o.Metrics, o.Counts = w.metering, w.metering.Run
		now, err := w.watched(o)
		return now, err
	}
	code, err := w.metering.finish(w.watcher.watch(c, &f.Evaluate, &f.Watch, streams))
	if interrupted(err) {
		code = ExitInterrupted
	}
	return code, err
}

// goOn makes the changes of a run independent of each other: nobody is there to run it again for those that another one has kept from being made.
func (w *watchWrites) goOn() {
	w.OnError, w.Options.MaxFailures, w.Options.SkipRejected = flags.ContinueOnError, 0, true
}

// watched compiles the policies of an apply-existing that goes on.
func (w *watchWrites) watched(o *ApplyOptions) (*watched, error) {
	now := &watched{factory: o.factory, options: &o.Options, asksForOld: factory.AsksForOld(&o.Options)}
	var err error
	now.run, err = o.Compile()
	own := &watch.Settling{}
	written, left := false, overtaken{}
	o.Executor.OnResult = func(t *apply.Task, r *apply.Result) {
		written = written || r.Outcome == apply.Applied
		left.add(t.Key, r)
		w.wrote(o, own, t, r)
	}
	o.Executor.Away = w.away()
	now.all = func(ctx context.Context) (int, error) {
		code, err := o.write(ctx, now.run)
		switch {
		case err == nil:
		case written && cluster.Uncertain(ctx, err):
			w.report(err) // what was not tried is left
		case written:
			return code, err
		default:
			return code, retryable(ctx, err)
		}
		return code, w.again(ctx, o, own, now.run, left)
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
	all := caused{run: e, changes: got.changes, events: events, by: map[engine.ObjectKey][]*watch.Event{}}
	for _, c := range got.changes {
		all.by[named(c.Subject)] = causesOf(c, events)
	}
	left, err := w.make(ctx, by, own, &all)
	if err != nil {
		return err
	}
	for k := range left {
		for _, e := range all.by[k] {
			if e.Try() {
				err = &watch.RetryError{Err: fmt.Errorf("%s: %w", k, errOvertaken)}
			}
		}
	}
	return err
}

// caused are changes to make.
type caused struct {
	run     *preview.Run
	changes []*engine.Change
	events  []*watch.Event                      // that caused them; none where everything was evaluated
	by      map[engine.ObjectKey][]*watch.Event // those that caused the change of an object
}

// overtaken are the objects, by their names, whose changes were not made because of what others did meanwhile, or not tried. They are to be
// evaluated again.
type overtaken map[engine.ObjectKey]bool

// errOvertaken is why.
var errOvertaken = errors.New("it was changed while its change was to be made")

// named is the key by which an object is known, whichever part of it is written.
func named(k engine.ObjectKey) engine.ObjectKey {
	k.Subresource = ""
	return k.Named()
}

// add adds an object if its result is such a one, and else removes it. One that is held back because of another one waits for that.
func (o overtaken) add(k engine.ObjectKey, r *apply.Result) {
	var busy *apply.BusyError
	var held *apply.HeldBackError
	switch {
	case r.Outcome == apply.Drifted, r.Outcome == apply.NotTried, errors.As(r.Err, &busy),
		errors.As(r.Err, &held) && o[named(held.Target)]:
		o[named(k)] = true
	default:
		delete(o, named(k))
	}
}

// again makes the changes of objects that were overtaken when everything was evaluated, and of no others: a rule that appends would
// append twice.
func (w *watchWrites) again(ctx context.Context, by *ApplyOptions, own *watch.Settling, r *preview.Run, left overtaken) error {
	for tries := 0; len(left) > 0; tries++ {
		if tries == watch.MaxTries {
			w.report(fmt.Errorf("%s: %w, %d times in a row: it is left until something changes it again", engine.Few(slices.Collect(maps.Keys(left))), errOvertaken, tries))
			return nil
		}
		if !watch.Pause(ctx, time.Second) {
			return nil
		}
		_, _, world := by.factory.Events(&by.Options, nil)
		e := r.Over(by.Objects, by.Triggers, world)
		got, err := act(ctx, by.factory.Client, e)
		if err == nil {
			got.changes = slices.DeleteFunc(got.changes, func(c *engine.Change) bool { return !left[named(c.Subject)] })
			left, err = w.make(ctx, by, own, &caused{run: e, changes: got.changes})
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

// make makes changes, as a run with a journal of its own, and notes that at the events. It returns the objects that are to be evaluated again.
func (w *watchWrites) make(ctx context.Context, by *ApplyOptions, own *watch.Settling, all *caused) (overtaken, error) {
	left := overtaken{}
	if len(all.changes) == 0 {
		return left, nil
	}
	o, err := w.newOptions(w.command, by.factory, by.Request)
	if err != nil {
		return nil, err
	}
	run := by.recorded
	run.Created, run.Seed = all.run.World().Now, all.run.World().Seed
	if o.Executor.Journal, err = newJournal(by.factory, w.command, w.args, run, &w.Write); err != nil {
		return nil, err
	}
	o.Executor.OnWrite, o.Executor.Command = o.recordEvents, w.command.CommandPath()
	o.Executor.OnResult = func(t *apply.Task, r *apply.Result) {
		w.wrote(by, own, t, r)
		if left.add(t.Key, r); left[named(t.Key)] {
			return
		}
		for _, e := range all.by[named(t.Key)] {
			e.Make(t.Key)
		}
	}
	o.Executor.Away = w.away()
	if formats.ForPeople(w.Output.Format) {
		if err := heading(by.factory.Streams.Out, all.events); err != nil {
			return nil, err
		}
	}
	var tasks []*apply.Task
	for _, c := range all.changes {
		if err := o.print(output.Evaluated{Change: c}); err != nil {
			return nil, err
		}
		if c.Changed() && !c.Denied() {
			tasks = append(tasks, apply.NewTask(all.run, c))
			left[named(c.Subject)] = true
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
		w.failed.Store(true) // the others are not made
	}
	return left, retryable(ctx, err)
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
