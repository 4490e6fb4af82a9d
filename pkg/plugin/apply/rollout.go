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

// rollout is a workload that is not ready, and why, as it was last reported.
type rollout struct {
	key engine.ObjectKey
	why string
}

// waitForRollouts returns when all workloads among the objects have rolled out. Other kinds,
// and objects that are gone, are not waited for. Told is called when a workload has come further. The error
// names those that were not ready in time, or whose controller has given up, or is one of reading.
func waitForRollouts(ctx context.Context, server Server, keys []engine.ObjectKey, timeout time.Duration, told func(text string)) error {
	var left []rollout
	for _, k := range keys {
		if isWorkload(k) && (k.Subresource == "" || k.Subresource == "scale") {
			k.Subresource = ""
			left = append(left, rollout{key: k})
		}
	}
	var failed error // of reading; it may be a timeout of its own
	err := wait.PollUntilContextTimeout(ctx, rolloutInterval, timeout, true, func(context.Context) (bool, error) {
		left, failed = lookAtRollouts(ctx, server, left, told) // not cut off by the timeout
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

// lookAtRollouts reads the workloads once, and returns those that are not ready.
func lookAtRollouts(ctx context.Context, server Server, all []rollout, told func(string)) ([]rollout, error) {
	var left []rollout
	for _, l := range all {
		u, err := server.Get(ctx, l.key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return all, fmt.Errorf("waiting for %s: %w", l.key, err)
		}
		why, err := rolloutStatus(u)
		if err != nil {
			return all, err
		}
		if why != l.why && why != "" {
			told(fmt.Sprintf("%s: %s", l.key, why))
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

// rolloutStatus returns what a workload is waiting for, in the words of kstatus. It
// is empty if the workload has rolled out, and for any other kind. The error is
// that of a controller that has given up, or of an object that cannot be read.
func rolloutStatus(u *unstructured.Unstructured) (string, error) {
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
		return "", fmt.Errorf("%s: %s", key, result.Message)
	}
	return result.Message, nil
}
