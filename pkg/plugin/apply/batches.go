package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/interrupt"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// writing is the part of a run that writes.
type writing struct {
	*Executor
	hard    context.Context // of the requests in flight
	earlier int             // failures from before the first write
}

// write writes batch by batch, and reports what was not started.
func (x *Executor) write(ctx context.Context, ready []*Task) error {
	x.Writer.Slots = make(chan struct{}, x.Concurrency)
	hard, end := untilSecondInterrupt(ctx, x.ErrOut)
	defer end()
	w := writing{x, hard, x.tally.Failed}
	size := len(ready)
	if x.BatchSize > 0 {
		size = x.BatchSize
	}
	started := 0
	var err error
	for _, batch := range batches(ready, size) {
		if started > 0 {
			if sleep(ctx, x.Pause) != nil {
				err = ErrInterrupted
			}
		}
		if err == nil {
			var n int
			n, err = w.batch(ctx, batch)
			started += n
		}
		if err == nil && x.Wait {
			err = x.rollOut(ctx, batch)
		}
		if err != nil || w.tooManyFailures() {
			break
		}
	}
	return errors.Join(err, x.settle(ctx, ready, err), x.reportNotTried(ready))
}

// tooManyFailures reports whether so many writes have failed that no further one is
// started.
func (w *writing) tooManyFailures() bool {
	return w.MaxFailures > 0 && w.tally.Failed-w.earlier >= w.MaxFailures
}

// batch writes some of the objects, and returns how many were started.
func (w *writing) batch(ctx context.Context, batch []*Task) (started int, _ error) {
	var broken error
	err := ForEach(len(batch), w.writers(),
		func(i int) (*Result, error) {
			if ctx.Err() != nil {
				return nil, ErrInterrupted
			}
			if missed := w.missedTarget(batch[i]); missed != nil {
				return w.holdBack(batch[i], missed.Key.Named())
			}
			return w.writeOne(w.hard, batch[i])
		},
		func(i int, r *Result) (enough bool) {
			if r == nil {
				return false
			}
			started++
			broken = errors.Join(broken, w.report(batch[i], r))
			return broken != nil || w.tooManyFailures()
		})
	return started, errors.Join(err, broken)
}

// holdBack leaves an object as it is, because of a change that it triggers.
func (x *Executor) holdBack(t *Task, target engine.ObjectKey) (*Result, error) {
	r := t.verified.Result
	r.because(Failed, &HeldBackError{Target: target})
	if x.Writer.Journal == nil {
		return &r, nil
	}
	return &r, x.Writer.Journal.Result(t.verified, &r)
}

// writers is the number of workers. The slots let as many of them send as the user
// allows, while the others wait for their journal. One alone keeps the order.
func (x *Executor) writers() int {
	if x.Concurrency == 1 {
		return 1
	}
	return 4 * x.Concurrency
}

func (x *Executor) writeOne(ctx context.Context, t *Task) (*Result, error) {
	r, err := x.Writer.Write(t.under(ctx), t.verified)
	x.trim(&r)
	if err != nil {
		if r.Outcome == Applied { // and its status is left
			r.Status, t.stored = nil, &r
		}
		return nil, fmt.Errorf("stopped at %w", err)
	}
	x.trim(r.Status)
	written := r.Outcome == Applied || (r.Status != nil && r.Status.Outcome == Applied)
	if written && x.OnWrite != nil {
		x.OnWrite(ctx, t, &r)
	}
	return &r, nil
}

// trim keeps of the states of a result the version alone.
func (x *Executor) trim(r *Result) {
	if r == nil {
		return
	}
	if r.Outcome == Applied {
		r.Version = r.After.GetResourceVersion()
	}
	r.Before, r.After = nil, nil
}

// errStatusLeft reports that the server went away before the second of the two requests for an object was answered.
var errStatusLeft = errors.New("the server did not answer any more when the status was to be written: continue with --resume")

// reportNotTried reports what was verified and has no result.
func (x *Executor) reportNotTried(ready []*Task) error {
	for _, t := range ready {
		if t.reported {
			continue
		}
		r := t.verified.Result
		r.Outcome = NotTried
		if t.stored != nil {
			status := Result{Key: t.Key, Method: r.Method, Outcome: NotTried, Err: errStatusLeft}
			r = *t.stored
			r.Status = &status
		}
		if err := x.report(t, &r); err != nil {
			return err
		}
	}
	return nil
}

// rollOut waits until what was written has rolled out.
func (x *Executor) rollOut(ctx context.Context, batch []*Task) error {
	var keys []engine.ObjectKey
	for _, q := range batch {
		keys = append(keys, q.Key)
		if len(q.secrets()) > 0 && !engine.UsesSecret(ctx) {
			ctx = engine.WithSecret(ctx)
		}
	}
	return waitForRollouts(ctx, x.Writer.Server, keys, x.Timeout, func(text string) { fmt.Fprintln(x.ErrOut, redact.EscapeLine(text)) })
}

// untilSecondInterrupt returns a context for requests in flight. An interrupt cancels
// ctx, and only a second one the returned context. Call end when nothing is in flight.
func untilSecondInterrupt(ctx context.Context, errOut io.Writer) (hard context.Context, end func()) {
	second, release := interrupt.Hold(ctx)
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-hard.Done():
			return
		case <-ctx.Done():
		}
		fmt.Fprintln(errOut, "Interrupted: waiting for the requests in flight. Interrupt again to stop at once.")
		select {
		case <-hard.Done():
		case <-second:
			cancel()
		}
	}()
	return hard, func() {
		cancel()
		release()
	}
}

// sleep returns early with the context's error if that ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
