package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// rolloutInterval is how often a workload is read.
const rolloutInterval = time.Second

// RolloutWatcher waits for the rollouts of Deployments, StatefulSets and DaemonSets.
type RolloutWatcher struct {
	Server interface {
		Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error)
	}
	// Progress is called when a workload has come further. Never nil.
	Progress func(text string)
}

// RolloutStalledError reports a workload whose controller has given up.
type RolloutStalledError struct {
	Key     engine.ObjectKey
	Message string
}

// Error names the workload and what its status says.
func (e *RolloutStalledError) Error() string { return fmt.Sprintf("%s: %s", e.Key, e.Message) }

// rollout is a workload that is not ready, and why, as it was last reported.
type rollout struct {
	key engine.ObjectKey
	why string
}

// Wait returns when all workloads among the objects have rolled out. Other kinds,
// and objects that are gone, are not waited for. The error
// names those that were not ready in time, is a *RolloutStalledError, or one of reading.
func (w *RolloutWatcher) Wait(ctx context.Context, keys []engine.ObjectKey, timeout time.Duration) error {
	var left []rollout
	for _, k := range keys {
		if isWorkload(k) && (k.Subresource == "" || k.Subresource == "scale") {
			k.Subresource = ""
			left = append(left, rollout{key: k})
		}
	}
	var failed error // of reading; it may be a timeout of its own
	err := wait.PollUntilContextTimeout(ctx, rolloutInterval, timeout, true, func(context.Context) (bool, error) {
		left, failed = w.look(ctx, left) // not cut off by the timeout
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
		return rolloutTimeout(timeout, left)
	}
	return err
}

func rolloutTimeout(after time.Duration, left []rollout) error {
	waiting := make([]string, len(left))
	for i, l := range left {
		waiting[i] = fmt.Sprintf("%s: %s", l.key, l.why)
	}
	return fmt.Errorf("not rolled out after %s: %s", after, strings.Join(waiting, "; "))
}

// look reads the workloads once, and returns those that are not ready.
func (w *RolloutWatcher) look(ctx context.Context, all []rollout) ([]rollout, error) {
	var left []rollout
	for _, l := range all {
		u, err := w.Server.Get(ctx, l.key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return all, fmt.Errorf("waiting for %s: %w", l.key, err)
		}
		why, err := RolloutStatus(u)
		if err != nil {
			return all, err
		}
		if why != l.why && why != "" {
			w.Progress(fmt.Sprintf("%s: %s", l.key, why))
		}
		if why != "" {
			left = append(left, rollout{l.key, why})
		}
	}
	return left, nil
}

func isWorkload(key engine.ObjectKey) bool {
	return key.Group == "apps" && (key.Kind == "Deployment" || key.Kind == "StatefulSet" || key.Kind == "DaemonSet")
}

// RolloutStatus returns what a workload is waiting for, in the words of kstatus. It
// is empty if the workload has rolled out, and for any other kind. The error is a
// *RolloutStalledError, or that of an object that cannot be read.
func RolloutStatus(u *unstructured.Unstructured) (string, error) {
	key := engine.KeyOf(u)
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "updateStrategy", "type")
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	switch {
	case !isWorkload(key):
		return "", nil
	case strategy == "OnDelete": // nothing rolls out on its own; kstatus knows that of StatefulSets alone
		return "", nil
	case u.GetGeneration() > observed: // kstatus takes a workload without an observedGeneration for an observed one
		return "its controller has not seen the change yet", nil
	}
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); paused {
		// The controller reports no progress then, for which kstatus would wait: the replicas decide.
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
		return "", &RolloutStalledError{Key: key, Message: result.Message}
	}
	return result.Message, nil
}
