package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// interval is how often a workload is looked at.
const interval = time.Second

// Getter reads an object from the server.
type Getter interface {
	Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error)
}

// Watcher waits for rollouts.
type Watcher struct {
	Server Getter
	// Progress is told how far each workload is, when that has changed. Never nil.
	Progress func(text string)
	// Sleep waits, or ends early with the context's error; nil is the real clock.
	Sleep func(context.Context, time.Duration) error
}

// TimeoutError tells that workloads did not get ready in time.
type TimeoutError struct {
	After   time.Duration
	Waiting []string // what each was still waiting for
}

// Error names the workloads.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("not rolled out after %s: %s", e.After, strings.Join(e.Waiting, "; "))
}

// StuckError tells that a workload has given up.
type StuckError struct {
	Key  engine.ObjectKey
	What string
}

// Error names the workload and what it says of itself.
func (e *StuckError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.What) }

// waiting is a workload that is not ready, and why, as it was last told.
type waiting struct {
	key engine.ObjectKey
	why string
}

// Wait returns when all workloads among the objects have rolled out. Other kinds,
// and objects that are gone, are not waited for. The error is a *TimeoutError, a
// *StuckError, or one of reading.
func (w *Watcher) Wait(ctx context.Context, keys []engine.ObjectKey, timeout time.Duration) error {
	var left []waiting
	for _, k := range keys {
		if _, ok := workloads[k.GroupKind]; ok && (k.Subresource == "" || k.Subresource == "scale") {
			k.Subresource = ""
			left = append(left, waiting{key: k})
		}
	}
	for waited := time.Duration(0); ; waited += interval {
		var err error
		if left, err = w.look(ctx, left); err != nil || len(left) == 0 {
			return err
		}
		if waited >= timeout {
			return timedOut(timeout, left)
		}
		if err := w.sleep(ctx, interval); err != nil {
			return err
		}
	}
}

func timedOut(after time.Duration, left []waiting) error {
	e := &TimeoutError{After: after}
	for _, l := range left {
		e.Waiting = append(e.Waiting, fmt.Sprintf("%s: %s", l.key, l.why))
	}
	return e
}

// look reads the workloads once, and keeps those that are not ready.
func (w *Watcher) look(ctx context.Context, all []waiting) ([]waiting, error) {
	var left []waiting
	for _, l := range all {
		u, err := w.Server.Get(ctx, l.key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", l.key, err)
		}
		why, err := Status(u)
		if err != nil {
			return nil, err
		}
		if why != l.why && why != "" {
			w.Progress(fmt.Sprintf("%s: %s", l.key, why))
		}
		if why != "" {
			left = append(left, waiting{l.key, why})
		}
	}
	return left, nil
}

func (w *Watcher) sleep(ctx context.Context, d time.Duration) error {
	if w.Sleep != nil {
		return w.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), errors.New("stopped waiting for rollouts"))
	case <-timer.C:
		return nil
	}
}
