package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

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

// maxBatch limits the events that are evaluated and written at once.
const maxBatch = 100

// watchWrites makes the writes of a watch, with the current policies.
type watchWrites struct {
	*Flags
	*preview.Watcher
	command *cobra.Command
	args    []string
	by      *Options
	own     watch.Settling
	journal *watchJournal
}

// watchJournal is the journal of a watch: a new one each day, and after a change of policies.
type watchJournal struct {
	*journal.Writer
	of  *Options
	day string
}

// watch runs apply-existing as a watch.
func (f *Flags) watch(c *cobra.Command, args []string) (int, error) {
	if err := f.check(c); err != nil {
		return process.ExitNothing, err
	}
	w := preview.NewWatcher(c, &f.Evaluate, &f.Watch, maxBatch, time.Second)
	// Changes are independent of each other: nobody repeats the run for changes that the failure of another
	// prevents.
	f.OnError, f.Pace.MaxFailures, f.SkipRejected, f.Watches = flags.ContinueOnError, 0, true, true
	record := &watchJournal{}
	w.Open = func() (*preview.Watched, error) {
		o, err := f.ToOptions(c, args)
		if err != nil {
			return nil, err
		}
		o.Metrics, o.Counts = w.Metering, w.Metering.Run
		return (&watchWrites{Flags: f, Watcher: w, command: c, args: args, by: o, journal: record}).watched()
	}
	return w.Metering.Finish(w.Watch(c, &f.Evaluate, &f.Watch))
}

// watched compiles the policies of a watch.
func (w *watchWrites) watched() (*preview.Watched, error) {
	o := w.by
	now := &preview.Watched{Factory: o.factory, Options: &o.Options, Some: w.write}
	var err error
	now.Run, err = o.Compile()
	left := w.follow(o, nil)
	now.All = func(ctx context.Context) (int, error) {
		o.Executor.Journal = w.record(now.Run)
		code, err := o.write(ctx, now.Run)
		return code, left.requeue(ctx, err)
	}
	return now, err
}

// unmade are the changes of a run that were not made so far, by the objects that they change.
type unmade struct {
	*watchWrites
	events []*watch.Event // that cause them; none of a run over everything
	left   map[engine.ObjectKey]*change
	tried  bool // something came of one
}

// change is one that was not made so far.
type change struct {
	watch.Left
	causes []engine.ObjectKey // the object itself, or the triggers of the rules that change it
}

// follow has a run that events cause tell what it makes.
func (w *watchWrites) follow(o *Options, events []*watch.Event) *unmade {
	u := &unmade{watchWrites: w, events: events, left: map[engine.ObjectKey]*change{}}
	o.planned, o.Executor.OnResult, o.Executor.Away = u.plan, u.result, w.away()
	return u
}

// plan takes a change as it is evaluated, and reports whether it is to be made later: a rule could not be
// evaluated, since the server was away for a moment, or a service is. Of what comes again nothing is made
// now, so that a rule that appends does not append twice.
func (u *unmade) plan(c *engine.Change) (later bool) {
	for _, s := range c.Steps {
		if s.Outcome.Incomplete() && cluster.Uncertain(context.Background(), s.Err) {
			if later = true; u.events != nil && u.events[0].Tries() == 0 {
				u.Report(fmt.Errorf("%s is evaluated again later: %s: %w", c.Subject, s.Rule, s.Err))
			}
			break
		}
	}
	if later || c.Changed() && !c.Denied() {
		u.add(c)
	}
	return later
}

// add adds a change that is to be made.
func (u *unmade) add(c *engine.Change) {
	u.left[c.Subject.Whole()] = &change{watch.Left{Key: c.Target.Key}, causesOf(c)}
}

// causesOf returns the triggers of the rules that change an object, or may, and the object itself for its own
// rules.
func causesOf(c *engine.Change) []engine.ObjectKey {
	var out []engine.ObjectKey
	for _, s := range c.Steps {
		if s.Outcome == engine.Changed || s.Outcome.Incomplete() {
			out = append(out, cmp.Or(s.Trigger(), c.Target.Key))
		}
	}
	return engine.Distinct(out)
}

// result takes what came of a change. One that is held back because of another one waits for that.
func (u *unmade) result(t *write.Task, r *write.Result) {
	u.wrote(t, r)
	u.tried = u.tried || r.Outcome != write.NotTried
	version, half := r.Version, false
	if r.Outcome == write.Applied && r.Status != nil {
		r, half = r.Status, r.Status.Outcome == write.NotTried
	}
	k := t.Key.Whole()
	var held *write.HeldBackError
	switch now := u.left[k]; {
	case now == nil:
	case half: // a rule that appends would append to the object once more: --resume writes the status
		now.Refused, now.Version = true, version
	case r.Passes():
	case errors.As(r.Err, &held) && u.left[held.Target.Whole()] != nil:
		now.Refused = u.left[held.Target.Whole()].Refused
		now.Version = r.Version
	case r.Err != nil, r.Outcome == write.ServerKeepsValue:
		now.Refused, now.Version = true, r.Version
	default: // it was made, or the object is gone
		delete(u.left, k)
	}
}

// requeue has what is left of a run evaluated again, and returns the error of a run that made nothing at all,
// or was ended.
func (u *unmade) requeue(ctx context.Context, err error) error {
	var tooMany *write.TooManyError
	switch refused := errors.As(err, &tooMany); {
	case err == nil:
	case ctx.Err() != nil:
		u.MarkIncomplete() // the others are not made
		return err
	case refused && !u.Started():
		return err
	case refused:
		for _, c := range u.left {
			c.Refused = true
		}
		u.Report(err)
	case !u.tried && u.events == nil && u.Started():
		return &watch.RetryError{Err: err}
	case !u.tried:
		return preview.Retryable(ctx, err)
	default:
		u.Report(err)
	}
	causes := map[engine.ObjectKey]*watch.Event{}
	for k, c := range u.left {
		for _, e := range u.causing(c) {
			one := causes[e.Key.Whole()]
			if one == nil {
				later := *e
				one = &later
				causes[e.Key.Whole()], one.Left = one, map[engine.ObjectKey]watch.Left{}
			}
			one.Left[k] = c.Left
		}
	}
	for _, e := range causes {
		u.Queue.Later(e)
	}
	return nil
}

// causing returns the events that cause a change: those of the run, or else, as in a run over everything,
// updates of what triggers it.
func (u *unmade) causing(c *change) []*watch.Event {
	var out []*watch.Event
	for _, e := range u.events {
		if slices.ContainsFunc(c.causes, func(k engine.ObjectKey) bool { return k.Whole() == e.Key.Whole() }) {
			out = append(out, e)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, k := range c.causes {
		k.Subresource = ""
		mapping, err := u.by.factory.Client.Mapper().RESTMapping(k.GroupKind, k.Version)
		if err != nil {
			u.Report(fmt.Errorf("%s: %w", k, err)) // the kind is gone
			continue
		}
		out = append(out,
			&watch.Event{Mapping: mapping, Operation: u.by.Request.Operation, Key: k, Time: time.Now()})
	}
	return out
}

// wrote notes what was written.
func (w *watchWrites) wrote(t *write.Task, r *write.Result) {
	w.by.count(t, r)
	if r.Err != nil || r.Status != nil && r.Status.Err != nil {
		w.MarkIncomplete()
	}
	for _, part := range []*write.Result{r, r.Status} {
		if part != nil && part.Outcome == write.Applied {
			w.own.Wrote(t.Key, part.Version)
		}
	}
}

// write makes the changes that events cause, as a run with a journal of its own; of events that are evaluated
// again those that are left, and no others: a rule that appends would append twice.
func (w *watchWrites) write(ctx context.Context, e *evaluate.Run, each preview.Each,
	events []*watch.Event,
) error {
	got, err := preview.EvaluateEvents(ctx, w.by.factory.Client, e, each)
	if err != nil {
		return err
	}
	if got.Incomplete() {
		w.MarkIncomplete()
	}
	o, err := w.newOptions(w.command, w.by.factory, w.by.Request)
	if err != nil {
		return err
	}
	left := w.follow(o, events)
	changes := slices.DeleteFunc(got.Changes, func(c *engine.Change) bool {
		return !slices.ContainsFunc(events, func(e *watch.Event) bool {
			_, is := e.Left[c.Subject.Whole()]
			return is || e.Left == nil
		})
	})
	changes = slices.DeleteFunc(changes, left.plan)
	changes = w.settled(changes, events, left)
	w.own.Seen(events)
	if len(changes) > 0 {
		err = w.make(ctx, o, e, changes, events)
	}
	return left.requeue(ctx, err)
}

// make makes changes.
func (w *watchWrites) make(ctx context.Context, o *Options, e *evaluate.Run, changes []*engine.Change,
	events []*watch.Event,
) error {
	o.Executor.Journal, o.Executor.Command = w.record(e), w.command.CommandPath()
	if formats.ForPeople(w.Output.Format) {
		if err := preview.PrintHeading(w.by.factory.Streams.Out, events); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := o.keep(e, c); err != nil {
			return err
		}
	}
	if err := output.Flush(o.Shown); err != nil { // there is no summary that would end what is shown
		return err
	}
	_, err := o.Executor.Run(ctx)
	return errors.Join(err, output.Flush(o.Shown), o.Shown.Close())
}

// parts is how many files the journals of a watch are at least when they are as large as they may be.
const parts = 8

// record returns the function that returns the journal of the watch, or begins another one.
func (w *watchWrites) record(e *evaluate.Run) func() (*journal.Writer, error) {
	return func() (*journal.Writer, error) {
		j, today := w.journal, time.Now().Format(time.DateOnly)
		if j.Writer != nil {
			size, broken := j.Size()
			if most := w.JournalMaxSize.Value() / parts; broken == nil && j.of == w.by && j.day == today &&
				(most == 0 || size < most) {
				return j.Writer, nil
			}
			_ = j.Finish() // what was written is on the disk, or the run has ended with the error
			j.Writer = nil
		}
		run := w.by.recorded
		run.Created, run.Seed = e.World().Now, e.World().Seed
		create, err := NewJournal(w.by.factory, w.command, w.args, &w.Write,
			journal.Header{Allowed: w.Allowed, Run: run})
		if err != nil {
			return nil, err
		}
		begun, err := create()
		if err != nil {
			return nil, err
		}
		begun.Share()
		j.Writer, j.of, j.day = begun, w.by, today
		return begun, nil
	}
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

// settled leaves out the changes of objects that never settle, which are refused, and reports each object
// once when it is left out.
func (w *watchWrites) settled(changes []*engine.Change, events []*watch.Event,
	left *unmade,
) []*engine.Change {
	var out []*engine.Change
	for _, c := range changes {
		causes := causesOf(c)
		paused, begins := w.own.Pauses(c.Subject, causes, events)
		if begins {
			var rules []engine.RuleRef
			for _, s := range c.Steps {
				if s.Outcome == engine.Changed {
					rules = append(rules, s.Rule)
				}
			}
			w.Report(fmt.Errorf("%s: %s changed it %d times, each after a write of its own or right after somebody set it back: it is not written any more until the policies change",
				c.Subject, engine.Few(rules), watch.MaxWrites))
		}
		if !paused {
			out = append(out, c)
			continue
		}
		left.add(c)
		left.left[c.Subject.Whole()].Refused = true
	}
	return out
}
