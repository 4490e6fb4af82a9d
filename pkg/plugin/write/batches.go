package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// write writes batch by batch, and reports the tasks that were not started.
func (x *Executor) write(ctx context.Context, ready []*Task) error {
	hard, end := x.untilSecondInterrupt(ctx)
	defer end()
	// A drifted object is left as it is, even before the first write: this is not a failed write.
	failed := func() int { return x.tally.Failed - x.tally.Outcomes[string(Drifted)] }
	earlier := failed()
	tooManyFailures := func() bool { return x.MaxFailures > 0 && failed()-earlier >= x.MaxFailures }
	size := len(ready)
	if x.BatchSize > 0 {
		size = x.BatchSize
	}
	var err error
	for i, batch := range batches(ready, size) {
		if i > 0 && !cluster.Pause(ctx, x.Pause) {
			err = ErrInterrupted
		}
		if err == nil {
			err = x.batch(ctx, hard, batch, tooManyFailures)
		}
		if err == nil && x.Wait {
			err = x.rollOut(ctx, batch)
		}
		if err != nil || tooManyFailures() {
			break
		}
	}
	x.settle(ctx, ready, err)
	return errors.Join(err, x.reportNotTried(ready))
}

// batch writes some of the objects; requests in flight use the context hard. After too many failures it
// starts no further write.
func (x *Executor) batch(ctx, hard context.Context, batch []*Task, tooManyFailures func() bool) error {
	// The slots limit the concurrent requests, while further workers wait for their journal records. A single
	// worker keeps the order.
	workers := 4 * x.Concurrency
	if x.Concurrency == 1 {
		workers = 1
	}
	x.Meter.Start()
	defer x.Meter.Stop()
	x.Meter.Did("objects written", 0, len(batch))
	return ForEach(len(batch), workers,
		func(i int) (*Result, error) {
			if ctx.Err() != nil {
				return nil, ErrInterrupted
			}
			if missed := x.missedTarget(batch[i]); missed != nil {
				r := batch[i].verified.Result
				r.because(Failed, &HeldBackError{Target: missed.Key.Named()})
				return &r, x.Writer.outcome(batch[i].verified, &r)
			}
			return x.writeOne(hard, batch[i])
		},
		func(i int, r *Result) (enough bool, err error) {
			x.Meter.Did("objects written", i+1, len(batch))
			if r != nil {
				err = x.report(batch[i], r)
			}
			return tooManyFailures(), err
		})
}

func (x *Executor) writeOne(ctx context.Context, t *Task) (*Result, error) {
	r, err := x.writerOf(t).Write(ctx, t.verified)
	x.trim(&r)
	if err != nil {
		if r.Outcome == Applied { // and its status is not written
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

// trim reduces the states in a result to the version.
func (x *Executor) trim(r *Result) {
	if r == nil {
		return
	}
	if r.Outcome == Applied {
		r.Version = r.After.GetResourceVersion()
	}
	r.Before, r.After = nil, nil
}

// rollOut waits for the rollouts of the written workloads.
func (x *Executor) rollOut(ctx context.Context, batch []*Task) error {
	var keys []engine.ObjectKey
	for _, q := range batch {
		keys = append(keys, q.Key)
	}
	return waitForRollouts(ctx, x.Writer.Server, keys, x.Timeout, func(text string) {
		fmt.Fprintln(x.ErrOut, redact.EscapeLine(text))
	})
}

// untilSecondInterrupt returns a context for requests in flight: an interrupt cancels ctx, and a second one
// the returned context. Call end when nothing is in flight.
func (x *Executor) untilSecondInterrupt(ctx context.Context) (hard context.Context, end func()) {
	second, release := x.Interrupts.Hold()
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		select {
		case <-hard.Done():
			return
		case <-ctx.Done():
		}
		fmt.Fprintln(x.ErrOut, "Interrupted: waiting for the requests in flight. Interrupt again to stop at once.")
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

const rolloutInterval = time.Second

// waitForRollouts returns when all workloads among the objects have rolled out. Other kinds and deleted
// objects are skipped. Told is called on the progress of a workload. The error is a failed read, or names the
// workloads that timed out or whose controller gave up.
func waitForRollouts(ctx context.Context, server Server, keys []engine.ObjectKey, timeout time.Duration,
	told func(text string),
) error {
	var left []engine.ObjectKey
	for _, k := range keys {
		if isWorkload(k) && (k.Subresource == "" || k.Subresource == "scale") {
			k.Subresource = ""
			left = append(left, k)
		}
	}
	reported := map[engine.ObjectKey]string{} // the last reported state of each
	var failed error                          // of reading; may be its own timeout
	err := wait.PollUntilContextTimeout(ctx, rolloutInterval, timeout, true,
		func(context.Context) (bool, error) {
			left = slices.DeleteFunc(left, func(k engine.ObjectKey) bool {
				if failed != nil {
					return false
				}
				var why string
				why, failed = rolloutOf(ctx, server, k) // not subject to the timeout
				if why != "" && why != reported[k] {
					told(fmt.Sprintf("%s: %s", k, why))
				}
				reported[k] = why
				return why == "" && failed == nil
			})
			return len(left) == 0, failed
		})
	switch {
	case err == nil:
		return nil
	case failed != nil && !errors.Is(failed, ctx.Err()):
		return failed
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), errors.New("stopped waiting for rollouts"))
	case wait.Interrupted(err):
		waiting := make([]string, len(left))
		for i, k := range left {
			waiting[i] = fmt.Sprintf("%s: %s", k, reported[k])
		}
		return fmt.Errorf("not rolled out after %s: %s", timeout, strings.Join(waiting, "; "))
	}
	return err
}

// rolloutOf reads a workload and returns its rolloutStatus; empty if it was deleted.
func rolloutOf(ctx context.Context, server Server, key engine.ObjectKey) (string, error) {
	u, err := server.Get(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("waiting for %s: %w", key, err)
	}
	return rolloutStatus(u)
}

func isWorkload(key engine.ObjectKey) bool {
	return key.Group == "apps" && (key.Kind == "Deployment" || key.Kind == "StatefulSet" ||
		key.Kind == "DaemonSet")
}

// rolloutStatus returns the pending condition of a workload in the words of kstatus. It is empty if the
// workload has rolled out, and for other kinds. The error is a controller that gave up, or an unreadable
// object.
func rolloutStatus(u *unstructured.Unstructured) (string, error) {
	key := engine.KeyOf(u)
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "updateStrategy", "type")
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	switch {
	case !isWorkload(key):
		return "", nil
	case strategy == "OnDelete": // nothing rolls out by itself; kstatus knows this only for StatefulSets
		return "", nil
	case u.GetGeneration() > observed:
		// kstatus treats a missing observedGeneration as observed
		return "its controller has not seen the change yet", nil
	}
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); paused {
		// The controller then reports no progress, which kstatus would wait for: the replicas decide.
		u = u.DeepCopy()
		unstructured.RemoveNestedField(u.Object, "spec", "progressDeadlineSeconds")
	}
	result, err := status.Compute(u)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", key, err)
	case result.Status == status.CurrentStatus:
		return "", nil
	case result.Status == status.FailedStatus:
		return "", fmt.Errorf("%s: %s", key, result.Message)
	}
	return result.Message, nil
}
