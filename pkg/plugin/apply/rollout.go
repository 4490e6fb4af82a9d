package apply

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

// rolloutInterval is how often a workload is looked at.
const rolloutInterval = time.Second

// Getter reads an object from the server.
type Getter interface {
	Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error)
}

// RolloutWatcher waits for rollouts.
type RolloutWatcher struct {
	Server Getter
	// Progress is told how far each workload is, when that has changed. Never nil.
	Progress func(text string)
	// Sleep waits, or ends early with the context's error; nil is the real clock.
	Sleep func(context.Context, time.Duration) error
}

// RolloutTimeoutError tells that workloads did not get ready in time.
type RolloutTimeoutError struct {
	After   time.Duration
	Waiting []string // what each was still waiting for
}

// Error names the workloads.
func (e *RolloutTimeoutError) Error() string {
	return fmt.Sprintf("not rolled out after %s: %s", e.After, strings.Join(e.Waiting, "; "))
}

// RolloutStalledError tells that a workload has given up.
type RolloutStalledError struct {
	Key  engine.ObjectKey
	What string
}

// Error names the workload and what it says of itself.
func (e *RolloutStalledError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.What) }

// waitingRollout is a workload that is not ready, and why, as it was last told.
type waitingRollout struct {
	key engine.ObjectKey
	why string
}

// Wait returns when all workloads among the objects have rolled out. Other kinds,
// and objects that are gone, are not waited for. The error is a *TimeoutError, a
// *StuckError, or one of reading.
func (w *RolloutWatcher) Wait(ctx context.Context, keys []engine.ObjectKey, timeout time.Duration) error {
	var left []waitingRollout
	for _, k := range keys {
		if _, ok := workloads[k.GroupKind]; ok && (k.Subresource == "" || k.Subresource == "scale") {
			k.Subresource = ""
			left = append(left, waitingRollout{key: k})
		}
	}
	for waited := time.Duration(0); ; waited += rolloutInterval {
		var err error
		if left, err = w.look(ctx, left); err != nil || len(left) == 0 {
			return err
		}
		if waited >= timeout {
			return rolloutTimeout(timeout, left)
		}
		if err := w.sleep(ctx, rolloutInterval); err != nil {
			return err
		}
	}
}

func rolloutTimeout(after time.Duration, left []waitingRollout) error {
	e := &RolloutTimeoutError{After: after}
	for _, l := range left {
		e.Waiting = append(e.Waiting, fmt.Sprintf("%s: %s", l.key, l.why))
	}
	return e
}

// look reads the workloads once, and keeps those that are not ready.
func (w *RolloutWatcher) look(ctx context.Context, all []waitingRollout) ([]waitingRollout, error) {
	var left []waitingRollout
	for _, l := range all {
		u, err := w.Server.Get(ctx, l.key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("waiting for %s: %w", l.key, err)
		}
		why, err := RolloutStatus(u)
		if err != nil {
			return nil, err
		}
		if why != l.why && why != "" {
			w.Progress(fmt.Sprintf("%s: %s", l.key, why))
		}
		if why != "" {
			left = append(left, waitingRollout{l.key, why})
		}
	}
	return left, nil
}

func (w *RolloutWatcher) sleep(ctx context.Context, d time.Duration) error {
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
