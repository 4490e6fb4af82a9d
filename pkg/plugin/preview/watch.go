package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// WatchFormats returns the formats of -o that show one change after another.
func WatchFormats() []string {
	return []string{formats.Diff, formats.Summary, formats.Name, formats.JSON, formats.YAML}
}

// Watched is a command that follows changes, with its current policies.
type Watched struct {
	Factory *factory.Factory
	Options *evaluate.Options
	Run     *evaluate.Run
	// All evaluates everything, and Some the objects of events. A *watch.RetryError of All says that nothing
	// was written and the server did not answer.
	All       func(context.Context) (code int, err error)
	Some      func(context.Context, *evaluate.Run, Each, []*watch.Event) error
	followers []*watch.Follower
	beside    []*watch.Follower // of the policies' parameters and of targets
	awaits    bool              // there is no Run, since the policies name unknown kinds
}

// Each calls emit with the result for each object of a run.
type Each func(ctx context.Context, emit func(*engine.Change) error) (evaluation.Summary, error)

// Watcher repeats a command on changes until its context ends.
type Watcher struct {
	// Open reads and compiles the current policies. It is set before Watch.
	Open func() (*Watched, error)
	// Metering counts the watch. The results of Open may count in it too.
	Metering Metering

	// Queue has the events to be evaluated.
	Queue watch.Queue

	most    int           // events that are evaluated together
	settle  time.Duration // before they are
	errOut  io.Writer
	whole   atomic.Pointer[error] // why not everything was evaluated
	left    string                // as it was printed last
	changed chan struct{}         // policies or their inputs have changed
	pace    pace
	started bool        // everything was evaluated once
	failed  atomic.Bool // something was not evaluated or not written
	awaits  atomic.Bool // policies name an unknown kind

	// objects and policySources report whether these are watched.
	objects, policySources watch.Readiness
}

// NewWatcher returns a watcher for a command and its flags, which evaluates up to most events together,
// settle after the first of them.
func NewWatcher(c *cobra.Command, evaluate *flags.Evaluate, f *flags.Watch, most int,
	settle time.Duration,
) *Watcher {
	w := &Watcher{most: most, settle: settle, changed: make(chan struct{}, 1)}
	w.Metering = NewMetering(evaluate.Metrics, f.Listen, c, func() (waiting, pending, refused int) {
		left, not := w.Queue.Left()
		return w.Queue.Len(), len(left), len(not)
	})
	w.incomplete(errors.New("not everything was evaluated yet"))
	return w
}

// MarkIncomplete notes that something was not evaluated or not written: the watch ends with
// process.ExitIncomplete.
func (w *Watcher) MarkIncomplete() { w.failed.Store(true) }

// incomplete notes why not everything was evaluated; nil if it was.
func (w *Watcher) incomplete(err error) { w.whole.Store(&err) }

// Started reports whether everything was evaluated before, so that no error ends the watch.
func (w *Watcher) Started() bool { return w.started }

// ready returns why the watch is not ready: not everything is watched and evaluated, or changes are to be
// retried. A note names refused objects.
func (w *Watcher) ready() (note string, err error) {
	pending, refused := w.Queue.Left()
	if err := cmp.Or(w.policySources.Err(), w.objects.Err(), *w.whole.Load()); err != nil {
		return "", err
	}
	if len(pending) > 0 {
		return "", errors.New(leftText(pending, refused))
	}
	if len(refused) > 0 {
		note = fmt.Sprintf("%s refused: %v", wording.Plural(len(refused), "object"),
			refused[:min(len(refused), maxNamed)])
	}
	return note, nil
}

// maxNamed is the maximum number of refused objects that are named.
const maxNamed = 100

// leftText describes pending and refused objects, or is empty.
func leftText(pending, refused []engine.ObjectKey) string {
	var parts []string
	if len(pending) > 0 {
		parts = append(parts, wording.Plural(len(pending), "object")+" to be tried again ("+engine.Few(pending)+")")
	}
	if len(refused) > 0 {
		parts = append(parts, wording.Plural(len(refused), "object")+" refused ("+engine.Few(refused)+")")
	}
	return strings.Join(parts, ", ")
}

// tellLeft prints what is left if that has changed.
func (w *Watcher) tellLeft() {
	text := leftText(w.Queue.Left())
	if text != w.left {
		fmt.Fprintf(w.errOut, "Left: %s.\n", cmp.Or(text, "nothing"))
	}
	w.left = text
}

// follow makes and lists the followers of the objects. They continue where the previous followers ended.
func (w *Watcher) follow(ctx context.Context, now, before *Watched) error {
	now.followers, now.beside = nil, nil // of a failed attempt
	if now.Run == nil {
		w.objects.Track(nil)
		return nil
	}
	all, unknown, err := now.Factory.Followers(ctx, now.Options, now.Run)
	if err != nil {
		return err
	}
	for _, err := range unknown {
		w.Report(err)
	}
	w.objects.Track(slices.Concat(all.Objects, all.Params, all.Targets))
	now.beside, err = w.begin(ctx, all.Params, w.noteChange, func(err error) {
		w.Report(fmt.Errorf("changes of parameters are not noticed: %w", err))
	})
	if err != nil {
		return err
	}
	targets, err := w.begin(ctx, all.Targets, w.noteTarget, func(err error) {
		w.Report(fmt.Errorf("changes of targets are not noticed: %w", err))
	})
	if err != nil {
		return err
	}
	now.beside = append(now.beside, targets...)
	if before != nil {
		for _, f := range all.Objects {
			if i := slices.IndexFunc(before.followers, f.Same); i >= 0 {
				f.Adopt(before.followers[i])
			}
		}
	}
	if now.followers, err = w.begin(ctx, all.Objects, w.Queue.Put, nil); err != nil {
		return err
	}
	w.objects.Track(slices.Concat(now.followers, now.beside)) // with parts in place of others
	return nil
}

// begin starts followers with emit, unless they have their own. Followers that may not list their resource
// are left out if forbidden takes the reason.
func (w *Watcher) begin(ctx context.Context, all []*watch.Follower,
	emit func(context.Context, *watch.Event) error, forbidden func(error),
) ([]*watch.Follower, error) {
	var out []*watch.Follower
	for _, f := range all {
		if f.Report = w.Report; f.Emit == nil {
			f.Emit = emit
		}
		begun, err := f.Begin(ctx)
		switch {
		case forbidden != nil && apierrors.IsForbidden(err):
			forbidden(err)
		case err != nil:
			return nil, fmt.Errorf("watch %s: %w", f, err)
		default:
			out = append(out, begun...)
		}
	}
	return out, nil
}

// noteTarget queues an object as a target of rules that others trigger.
func (w *Watcher) noteTarget(_ context.Context, e *watch.Event) error {
	if e.Operation != engine.OperationDelete {
		w.Queue.Later(e.ForTarget())
	}
	return nil
}

// Report prints an error, which leaves the run incomplete.
func (w *Watcher) Report(err error) {
	w.MarkIncomplete()
	w.Metering.Error()
	fmt.Fprintf(w.errOut, "error: %v\n", err)
}

// policies follows the sources of policies, from before they are read.
func (w *Watcher) policies(ctx context.Context, f *factory.Factory) error {
	followers, err := f.PolicyFollowers(ctx)
	if err != nil {
		return err
	}
	for _, p := range followers {
		if permission.Defines(p.Mapping().GroupVersionKind.GroupKind()) {
			p.Emit = w.noteKind
		}
	}
	begun, err := w.begin(ctx, followers, w.noteChange, func(error) {}) // reading policies reports it
	if err != nil {
		return err
	}
	w.policySources.Track(begun)
	for _, p := range begun {
		go p.Run(ctx)
	}
	files := watch.Files(f.Files())
	go files(ctx, func() { _ = w.noteChange(ctx, nil) }) // never fails
	return nil
}

// noteKind notes a change of the cluster's kinds if the policies lack one.
func (w *Watcher) noteKind(ctx context.Context, e *watch.Event) error {
	if !w.awaits.Load() {
		return nil
	}
	time.AfterFunc(servedAfter, func() {
		if ctx.Err() == nil && w.awaits.Load() {
			w.retry()
		}
	})
	return w.noteChange(ctx, e)
}

// servedAfter is how long a busy server may take to serve a new kind.
const servedAfter = 10 * time.Second

// noteChange notes a change of policies or their inputs. It implements the Emit of a follower.
func (w *Watcher) noteChange(context.Context, *watch.Event) error {
	select {
	case w.changed <- struct{}{}:
	default: // already noted
	}
	return nil
}

// retry makes the watch read and evaluate everything again, as after a change of policies.
func (w *Watcher) retry() { _ = w.noteChange(context.Background(), nil) }

// pace slows down repeated changes of policies that come right after an evaluation, as those that the run
// makes itself do.
type pace struct {
	delay time.Duration
	since time.Time // everything was evaluated
}

// The delay after a change, in which others may follow, its maximum, and how soon after an evaluation a
// change may be the run's own.
const (
	minPace = time.Second
	maxPace = time.Minute
	soon    = 5 * time.Second
)

func (p *pace) evaluated() { p.since = time.Now() }

// wait waits after a change. It returns false when the context ends.
func (p *pace) wait(ctx context.Context) bool {
	if p.delay = min(2*p.delay, maxPace); p.delay == 0 || time.Since(p.since) > soon {
		p.delay = minPace
	}
	return cluster.Pause(ctx, p.delay)
}

// next waits until policies have changed and compile. It returns nil when the context ends.
func (w *Watcher) next(ctx context.Context) *Watched {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
		}
		if !w.pace.wait(ctx) { // several often change together
			return nil
		}
		select {
		case <-w.changed:
		default:
		}
		fmt.Fprintln(w.errOut, "Policies, or other objects that they read, have changed.")
		now, err := w.Open()
		switch {
		case ctx.Err() != nil:
			return nil
		case now != nil && now.Run != nil && now.Run.Broken() > now.Run.Awaited():
			err = errors.New(now.Run.BrokenText())
		case errors.Is(err, evaluate.ErrNoRules), errors.Is(err, input.ErrNoPolicy):
			return w.nothing(now, fmt.Errorf("%w: nothing is evaluated until there are policies again", err))
		case err == nil:
			return now
		}
		w.Report(fmt.Errorf("the previous policies stay in use: %w", err))
		if w.pace.evaluated(); cluster.Uncertain(ctx, err) {
			w.retry()
		}
	}
}

// nothing reports why there is nothing to evaluate, and returns an idle Watched.
func (w *Watcher) nothing(now *Watched, why error) *Watched {
	w.Report(why)
	all := func(context.Context) (int, error) { return process.ExitOK, nil }
	return &Watched{All: all, awaits: now.awaitsKinds()}
}

// awaitsKinds reports whether policies name unknown kinds.
func (now *Watched) awaitsKinds() bool {
	return now != nil && (now.awaits || now.Run != nil && now.Run.Awaited() > 0)
}

// Run evaluates everything, and then each change until the context ends. When policies change, it starts
// again.
func (w *Watcher) Run(ctx context.Context, now *Watched) (code int, err error) {
	var before *Watched
	for {
		next, code, err := w.generation(ctx, now, before)
		switch {
		case err != nil || code == process.ExitInterrupted:
			return code, err
		case next == nil && w.failed.Load():
			return process.ExitIncomplete, nil
		case next == nil:
			return process.ExitOK, nil
		}
		before, now = now, next
	}
}

// generation is Run for the current policies. It returns their successors; nil when the context ended.
func (w *Watcher) generation(ctx context.Context, now, before *Watched) (next *Watched, code int, err error) {
	for err := w.follow(ctx, now, before); err != nil; err = w.follow(ctx, now, before) {
		if !cluster.Uncertain(ctx, err) {
			return nil, process.ExitNothing, err
		}
		w.Report(err)
		cluster.Pause(ctx, time.Second)
	}
	w.awaits.Store(now.awaitsKinds())
	following, end := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer end()
	for _, f := range slices.Concat(now.followers, now.beside) {
		group.Go(func() { f.Run(following) })
	}
	w.Queue.ForgetRefused()
	code, err = now.All(ctx)
	w.incomplete(err)
	var again *watch.RetryError
	switch {
	case code == process.ExitInterrupted || ctx.Err() != nil || err != nil && before == nil &&
		!errors.As(err, &again):
		return nil, code, err
	case errors.As(err, &again):
		w.Report(fmt.Errorf("not everything was evaluated, trying again: %w", err))
		w.retry()
	case err != nil:
		w.Report(err)
	}
	w.started = true
	w.failed.Store(w.failed.Load() || code > process.ExitChanges)
	w.tellLeft()
	w.pace.evaluated()
	w.announce(now)
	stop, changed := context.WithCancel(ctx)
	defer changed()
	group.Go(func() {
		if next = w.next(stop); next != nil {
			changed()
		}
	})
	loop := watch.Loop{
		Queue: &w.Queue, Most: w.most, Settle: w.settle, Report: w.Report,
		Evaluate: func(ctx context.Context, events []*watch.Event) error {
			return w.evaluate(ctx, now, events)
		},
	}
	loop.Run(ctx, stop)
	end()
	group.Wait() // next is known
	return next, process.ExitOK, nil
}

// announce prints that the first run has ended, and what is watched.
func (w *Watcher) announce(now *Watched) {
	if now.Run == nil || now.Options.Quiet {
		return
	}
	var kinds []string
	for _, f := range now.followers {
		kinds = append(kinds, f.String())
	}
	fmt.Fprintf(w.errOut, "Watching %s. Interrupt to end.\n", engine.Few(engine.Distinct(kinds)))
}

// evaluate evaluates events for a watch.Loop.
func (w *Watcher) evaluate(ctx context.Context, now *Watched, events []*watch.Event) error {
	if now.Run == nil {
		return nil
	}
	events, err := w.renew(ctx, now, events)
	if err != nil || len(events) == 0 {
		return Retryable(ctx, err)
	}
	objects, triggers, world := now.Factory.Events(now.Options, events)
	e := now.Run.Over(objects, triggers, world)
	each := e.Each
	if events[0].Target {
		var targets []engine.Target
		for _, e := range events {
			targets = append(targets, objects.Target(ctx, e))
		}
		each = func(ctx context.Context, emit func(*engine.Change) error) (evaluation.Summary, error) {
			return evaluation.Summary{}, e.Triggered(ctx, targets, emit)
		}
	}
	err = now.Some(ctx, e, each, events)
	w.tellLeft()
	for _, e := range events {
		if err == nil {
			w.Metering.Event(e.Operation, e.Key.GroupKind)
		}
	}
	return err
}

// renew returns the events that still need an evaluation, with the current state of their objects.
func (w *Watcher) renew(ctx context.Context, now *Watched, events []*watch.Event) ([]*watch.Event, error) {
	var out, rest []*watch.Event
	for _, e := range events {
		again, refused, err := e.Renew(ctx, now.Factory.Client.Get)
		if err != nil {
			return nil, err
		}
		if again != nil {
			out = append(out, again)
		}
		if refused != nil {
			rest = append(rest, refused)
		}
	}
	for _, e := range rest {
		w.Queue.Later(e)
	}
	return out, nil
}

// EventChanges are the changes that events cause.
type EventChanges struct {
	Changes []*engine.Change // that are listed
	summary evaluation.Summary
}

// Incomplete reports whether a rule failed.
func (a *EventChanges) Incomplete() bool {
	return slices.ContainsFunc(a.Changes, func(c *engine.Change) bool { return c.Incomplete() })
}

// EvaluateEvents evaluates the objects of events, and returns the changes that are listed. The error is a
// *watch.RetryError if the server did not answer.
func EvaluateEvents(ctx context.Context, client *cluster.Client, e *evaluate.Run,
	each Each,
) (EventChanges, error) {
	var out EventChanges
	var lost error
	summary, err := each(ctx, func(c *engine.Change) error {
		for _, s := range c.Steps {
			if s.Outcome.Incomplete() && cluster.Uncertain(ctx, s.Err) {
				lost = s.Err
			}
		}
		if output.Listed(c, false) {
			out.Changes = append(out.Changes, c)
		}
		return nil
	})
	out.summary = summary
	for _, part := range e.Unreadable() {
		if cluster.Uncertain(ctx, part) {
			lost = part
		}
	}
	if err == nil && lost != nil && !answers(ctx, client) {
		return out, &watch.RetryError{Err: lost}
	}
	return out, Retryable(ctx, err)
}

// Retryable returns a *watch.RetryError for an error that says that the server did not answer.
func Retryable(ctx context.Context, err error) error {
	if cluster.Uncertain(ctx, err) {
		return &watch.RetryError{Err: err}
	}
	return err
}

// answers reports whether the server answers: a rule may also call other services.
func answers(ctx context.Context, client *cluster.Client) bool {
	_, err := client.Get(ctx,
		engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: "default"})
	return !cluster.Uncertain(ctx, err)
}

// PrintHeading prints the line above the changes of events, for people.
func PrintHeading(out io.Writer, events []*watch.Event) error {
	for _, e := range events {
		if _, err := fmt.Fprintln(out, redact.EscapeLine(fmt.Sprintf("== %s %s (%s)", e.Operation, e.Key,
			e.Time.UTC().Format(time.RFC3339)))); err != nil {
			return err
		}
	}
	return nil
}

// watch runs preview --watch.
func (f *Flags) watch(c *cobra.Command, args []string) (code int, err error) {
	if _, err := f.check(c); err != nil {
		return process.ExitNothing, err
	}
	w := NewWatcher(c, &f.Evaluate, &f.Watch, 1, 100*time.Millisecond)
	var last *Options
	w.Open = func() (*Watched, error) {
		o, err := f.ToOptions(c, args)
		if err != nil {
			return nil, err
		}
		o.Metrics, o.Counts, o.incomplete = w.Metering, w.Metering.Run, w.MarkIncomplete
		if last != nil {
			err = last.End()
		}
		last = o
		now, failed := o.watched()
		return now, errors.Join(failed, err)
	}
	code, err = w.Metering.Finish(w.Watch(c, &f.Evaluate, &f.Watch))
	if last != nil {
		err = errors.Join(err, last.End())
	}
	return code, err
}

// Watch follows the sources of policies, reads these, and runs until the context ends.
func (w *Watcher) Watch(c *cobra.Command, e *flags.Evaluate, f *flags.Watch) (code int, err error) {
	with, err := factory.Open(e, false, false)
	if err != nil {
		return process.ExitNothing, err
	}
	w.errOut = with.Streams.ErrOut
	if f.Listen != "" {
		server, err := metrics.Listen(c.Context(), f.Listen, w.Metering.Run, w.ready)
		if err != nil {
			return process.ExitNothing, fmt.Errorf("--metrics-listen: %w", err)
		}
		defer server.Close() //nolint:errcheck // nobody is served any more
		fmt.Fprintf(w.errOut, "Metrics: %s\n", server.URL())
	}
	if with.Client != nil {
		if err := w.policies(c.Context(), with); err != nil {
			return process.ExitNothing, err
		}
	}
	now, err := w.Open()
	switch {
	case errors.Is(err, evaluate.ErrNoRules) && now.awaitsKinds() && now.Run.Broken() == now.Run.Awaited():
		now = w.nothing(now, fmt.Errorf("%w: nothing is evaluated until these kinds exist", err))
	case err != nil:
		return process.ExitNothing, err
	}
	return w.Run(c.Context(), now)
}

// watched compiles the policies of a watch.
func (o *Options) watched() (*Watched, error) {
	now := &Watched{Factory: o.factory, Options: &o.Options, Some: o.showEvents}
	o.NotFound = nil // it may be created later
	var err error
	now.Run, err = o.Compile()
	now.All = func(ctx context.Context) (int, error) {
		code, err := o.show(ctx, now.Run)
		return code, Retryable(ctx, err)
	}
	return now, err
}

// showEvents shows what events would change.
func (o *Options) showEvents(ctx context.Context, e *evaluate.Run, each Each, events []*watch.Event) error {
	got, err := EvaluateEvents(ctx, o.factory.Client, e, each)
	if err != nil || len(got.Changes) == 0 {
		return err
	}
	if got.Incomplete() {
		o.incomplete()
	}
	options := o.printing
	options.Context.Operation, options.Context.Trigger = string(events[0].Operation), &events[0].Key
	printer, err := formats.New(o.format, options)
	if err != nil {
		return err
	}
	people := formats.ForPeople(o.format)
	switch {
	case people:
		_, err = fmt.Fprintln(options.Out)
		err = errors.Join(err, PrintHeading(options.Out, events))
	case o.format == formats.YAML:
		_, err = fmt.Fprintln(options.Out, "---")
	}
	for _, c := range got.Changes {
		if err == nil {
			err = printer.Print(output.Evaluated{Change: c})
		}
	}
	switch {
	case err != nil:
		return err
	case people:
		return output.Flush(printer)
	}
	return errors.Join(printer.Print(output.Summary{Summary: got.summary}), printer.Close())
}
