package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// write writes batch by batch, and reports what was not begun.
func (x *Executor) write(ctx context.Context, ready []*Task) error {
	x.Writer.Slots = NewSlots(x.Concurrency)
	hard, end := outlive(ctx, x.ErrOut)
	defer end()
	x.earlierFailures = x.tally.Failed
	size := len(ready)
	if x.BatchSize > 0 {
		size = x.BatchSize
	}
	begun := 0
	var err error
	for batch := range slices.Chunk(ready, size) {
		if begun > 0 {
			if sleep(ctx, x.Pause) != nil {
				err = ErrInterrupted
			}
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
func (x *Executor) enough() bool {
	return x.MaxFailures > 0 && x.tally.Failed-x.earlierFailures >= x.MaxFailures
}

// writeBatch writes some of the objects, and says how many were begun.
func (x *Executor) writeBatch(ctx, hard context.Context, batch []*Task) (begun int, _ error) {
	var broken error
	err := ForEach(len(batch), x.writers(),
		func(i int) (*Result, error) {
			if ctx.Err() != nil {
				return nil, ErrInterrupted
			}
			return x.writeOne(hard, batch[i])
		},
		func(i int, r *Result) (enough bool) {
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
func (x *Executor) writers() int {
	if x.Concurrency == 1 {
		return 1
	}
	return 2 * x.Concurrency
}

func (x *Executor) writeOne(ctx context.Context, t *Task) (*Result, error) {
	r, err := x.Writer.Write(ctx, t.verified)
	if err != nil {
		return nil, fmt.Errorf("broke off at %w", err)
	}
	for _, part := range []*Result{&r, r.Status} {
		if part == nil {
			continue
		}
		x.Masker.Learn(part.Before)
		x.Masker.Learn(part.After)
		part.Before, part.After = nil, nil
	}
	written := r.Outcome == Applied || (r.Status != nil && r.Status.Outcome == Applied)
	if written && x.OnWrite != nil {
		x.OnWrite(ctx, t, &r)
	}
	return &r, nil
}

// leave reports what was verified and not begun.
func (x *Executor) leave(rest []*Task) error {
	for _, t := range rest {
		r := t.verified.Result
		r.Outcome = NotTried
		if err := x.report(t, &r); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the rollouts of what was written.
func (x *Executor) await(ctx context.Context, batch []*Task) error {
	var keys []engine.ObjectKey
	for _, t := range batch {
		keys = append(keys, t.Key)
	}
	w := RolloutWatcher{Server: x.Writer.Server, Progress: func(text string) { fmt.Fprintln(x.ErrOut, text) }}
	return w.Wait(ctx, keys, x.Timeout)
}
