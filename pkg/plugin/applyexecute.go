package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rollout"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/secret"
)

// executor makes the changes that tasks want: it verifies all of them, asks, and
// writes. It is the second half of every command that writes.
type executor struct {
	*WriteFlags
	Command string // as the user has to type it
	Writer  *apply.Writer
	Prompt  *Prompt
	Results render.ResultPrinter
	// Access is asked whether the user may write, and Mapper for the resources.
	Access engine.RawReader
	Mapper meta.RESTMapper
	// Journal opens the journal before the first write; nil keeps none.
	Journal func() (*journal.Writer, error)
	// Agreed tells that the user has agreed to the changes before, so that nothing
	// is asked.
	Agreed bool
	Masker *secret.Masker // learns from what is read
	ErrOut io.Writer
	Meter  *progress.Meter // tells how far the verification is; nil tells nothing

	// Wrote is called after each write, by several goroutines, and Count with each
	// result, one after the other. Either may be nil.
	Wrote func(context.Context, *task, *apply.Result)
	// ShowDrift shows what was planned and what would be done now; nil shows nothing.
	ShowDrift func(*plan.Drift) error
	Count     func(*task, *apply.Result)

	tally   tally
	spared  int // failures from before the first write
	journal *journal.Writer
}

// tally is what came of a run so far.
type tally struct {
	written  int
	failed   int // every object that is not as wanted, whatever the reason
	rejected int // those of them that the server, or an owner, stands against
	notTried int
	outcomes map[string]int
	// earlier is what was written, and what failed, in a run that this one goes on with.
	earlier struct{ written, failed int }
}

// code is the exit code of a run: 0 when all went well, else it says whether
// anything was written at all.
func (t *tally) code(incomplete bool) int {
	switch {
	case t.failed+t.earlier.failed+t.notTried == 0 && !incomplete:
		return ExitOK
	case t.written+t.earlier.written == 0:
		return ExitNothing
	}
	return ExitIncomplete
}

// errInterrupted ends a run that the user stopped.
var errInterrupted = errors.New("interrupted")

// run works through the tasks. The error says why nothing, or not everything, was
// tried; what came of single objects are results.
func (x *executor) run(ctx context.Context, tasks []*task) error {
	return errors.Join(x.work(ctx, tasks), x.closeJournal(ctx.Err() != nil))
}

func (x *executor) work(ctx context.Context, tasks []*task) error {
	if x.Writer.DryRun != apply.DryRunClient {
		if err := x.mayWrite(ctx, tasks); err != nil {
			return nothingWritten(err)
		}
	}
	tasks, err := x.settle(ctx, tasks)
	if err != nil {
		return nothingWritten(err)
	}
	ready, err := x.verify(ctx, tasks)
	if err != nil {
		return nothingWritten(err)
	}
	if x.rehearses() {
		return nil
	}
	if ready, err = x.agree(ctx, ready); err != nil || len(ready) == 0 {
		return err
	}
	if err := x.openJournal(ready); err != nil {
		return nothingWritten(err)
	}
	return x.write(ctx, ready)
}

func nothingWritten(err error) error {
	if errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	return fmt.Errorf("nothing was written: %w", err)
}

// verify has the server rehearse every change, and reports those that are not to
// be written.
func (x *executor) verify(ctx context.Context, tasks []*task) ([]*task, error) {
	var ready []*task
	var broken error
	x.Meter.Start()
	defer x.Meter.Stop()
	err := apply.Each(len(tasks), x.Concurrency,
		func(i int) (*apply.Verified, error) {
			v, err := x.Writer.Verify(ctx, tasks[i].key, tasks[i].want)
			if err != nil {
				return nil, err
			}
			x.inspect(v)
			return v, nil
		},
		func(i int, v *apply.Verified) (enough bool) {
			x.Meter.Did("verified", i+1, len(tasks))
			switch {
			case v == nil:
			case v.Outcome != apply.Planned, x.rehearses():
				broken = errors.Join(x.recordUnwritten(tasks[i], v), x.report(tasks[i], &v.Result))
			default:
				tasks[i].verified = v
				ready = append(ready, tasks[i])
			}
			return broken != nil
		})
	return ready, errors.Join(err, broken)
}

// inspect looks at what was read while it is at hand, and lets go of it: a run
// over ten thousand objects cannot keep them.
func (x *executor) inspect(v *apply.Verified) {
	x.Masker.Learn(v.Before)
	x.Masker.Learn(v.After)
	if s := v.Status(); s != nil && v.Outcome == apply.Planned && s.Err != nil {
		v.Outcome, v.Err = s.Outcome, s.Err // one object is written in both parts, or not at all
	}
	due := v.Outcome == apply.Planned || v.Outcome.Rejection()
	if by := impact.Managed(v.Before); len(by) > 0 && due && !x.IncludeManaged {
		v.Outcome, v.Err = apply.Managed, &apply.ObjectError{Key: v.Key, Err: &apply.ManagedError{By: by[0].String(), Source: by[0].Source}}
	}
	if v.Outcome == apply.Failed {
		v.Instead = impact.Workload(v.Before)
	}
	if !x.rehearses() {
		v.Release()
	}
}

// report counts and shows what came of one object.
func (x *executor) report(t *task, r *apply.Result) error {
	r.Rules, r.Autoscaled = t.rules, t.autoscaled
	x.tally.add(r)
	var drift *plan.Drift
	if errors.As(r.Err, &drift) && x.ShowDrift != nil {
		if err := x.ShowDrift(drift); err != nil {
			return err
		}
	}
	if x.Count != nil {
		x.Count(t, r)
	}
	return x.Results.Print(*r)
}

func (t *tally) add(r *apply.Result) {
	if t.outcomes == nil {
		t.outcomes = map[string]int{}
	}
	t.outcomes[string(r.Outcome)]++
	switch {
	case r.Outcome == apply.Applied, r.Outcome == apply.Planned:
		t.written++
	case r.Outcome == apply.NotTried:
		t.notTried++
	case r.Err != nil:
		t.failed++
	}
	if r.Outcome.Rejection() {
		t.rejected++
	}
	if r.Status != nil && r.Status.Err != nil {
		t.failed++
	}
}

// agree asks for what the verification found, and for the yes to it all.
func (x *executor) agree(ctx context.Context, ready []*task) ([]*task, error) {
	ready, err := x.agreeToLosses(ctx, ready)
	switch {
	case err != nil:
		return nil, err
	case x.tally.rejected > 0 && !x.SkipRejected:
		return nil, fmt.Errorf("nothing was written: %s of %d cannot be written; mend that, or leave them out with --skip-rejected",
			plural(x.tally.rejected, "object"), x.tally.rejected+len(ready))
	case len(ready) == 0:
		return nil, nil
	}
	for _, t := range ready {
		if why := t.verified.Unverified; why != nil {
			fmt.Fprintf(x.ErrOut, "warning: %v: not verified; whether the server takes the change shows when it is written\n", why)
		}
	}
	if x.Agreed {
		return ready, nil
	}
	return ready, x.Prompt.all(ready, x.tally.failed, x.MaxChanges)
}

// agreeToLosses asks about each change by which the server would drop live data,
// and reports those that are not agreed to.
func (x *executor) agreeToLosses(ctx context.Context, ready []*task) ([]*task, error) {
	var agreed []*task
	for _, t := range ready {
		yes, err := x.Writer.AgreeToLoss(ctx, t.verified)
		if err == nil && !yes {
			err = x.report(t, &t.verified.Result)
		}
		if err != nil {
			return nil, err
		}
		if yes {
			agreed = append(agreed, t)
		}
	}
	return agreed, nil
}

// write writes batch by batch, and reports what was not begun.
func (x *executor) write(ctx context.Context, ready []*task) error {
	x.Writer.Slots = apply.NewSlots(x.Concurrency)
	hard, end := outlive(ctx, x.ErrOut)
	defer end()
	x.spared = x.tally.failed
	size := len(ready)
	if x.BatchSize > 0 {
		size = x.BatchSize
	}
	begun := 0
	var err error
	for batch := range slices.Chunk(ready, size) {
		if begun > 0 {
			err = pause(ctx, x.Pause)
		}
		if err == nil {
			var n int
			n, err = x.writeBatch(ctx, hard, batch)
			begun += n
		}
		if err == nil && x.Wait {
			err = x.await(ctx, batch)
		}
		if err != nil || x.enough() {
			break
		}
	}
	return errors.Join(err, x.leave(ready[begun:]))
}

// enough tells whether so many writes have failed that no further one is begun.
func (x *executor) enough() bool {
	most := x.failures()
	return most > 0 && x.tally.failed-x.spared >= most
}

// writeBatch writes some of the objects, and says how many were begun.
func (x *executor) writeBatch(ctx, hard context.Context, batch []*task) (begun int, _ error) {
	var broken error
	err := apply.Each(len(batch), x.writers(),
		func(i int) (*apply.Result, error) {
			if ctx.Err() != nil {
				return nil, errInterrupted
			}
			return x.writeOne(hard, batch[i])
		},
		func(i int, r *apply.Result) (enough bool) {
			if r == nil {
				return false
			}
			begun++
			broken = errors.Join(broken, x.report(batch[i], r))
			return broken != nil || x.enough()
		})
	return begun, errors.Join(err, broken)
}

// writers is how many work side by side, of which the slots let as many send as
// the user allows: the others wait for their journal. One alone keeps the order.
func (x *executor) writers() int {
	if x.Concurrency == 1 {
		return 1
	}
	return 2 * x.Concurrency
}

func (x *executor) writeOne(ctx context.Context, t *task) (*apply.Result, error) {
	r, err := x.Writer.Write(ctx, t.verified)
	if err != nil {
		return nil, fmt.Errorf("broke off at %w", err)
	}
	for _, part := range []*apply.Result{&r, r.Status} {
		if part == nil {
			continue
		}
		x.Masker.Learn(part.Before)
		x.Masker.Learn(part.After)
		part.Before, part.After = nil, nil
	}
	written := r.Outcome == apply.Applied || (r.Status != nil && r.Status.Outcome == apply.Applied)
	if written && x.Wrote != nil {
		x.Wrote(ctx, t, &r)
	}
	return &r, nil
}

// leave reports what was verified and not begun.
func (x *executor) leave(rest []*task) error {
	for _, t := range rest {
		r := t.verified.Result
		r.Outcome = apply.NotTried
		if err := x.report(t, &r); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the rollouts of what was written.
func (x *executor) await(ctx context.Context, batch []*task) error {
	var keys []engine.ObjectKey
	for _, t := range batch {
		keys = append(keys, t.key)
	}
	w := rollout.Watcher{Server: x.Writer.Server, Progress: func(text string) { fmt.Fprintln(x.ErrOut, text) }}
	return w.Wait(ctx, keys, x.Timeout)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return errInterrupted
	case <-timer.C:
		return nil
	}
}
