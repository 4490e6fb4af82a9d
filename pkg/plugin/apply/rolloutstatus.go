package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// workloads are the kinds whose rollout can be followed, as
// k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go does.
var workloads = map[schema.GroupKind]func(numbers) string{ //nolint:gochecknoglobals // an immutable table
	{Group: "apps", Kind: "Deployment"}:  deployment,
	{Group: "apps", Kind: "StatefulSet"}: statefulSet,
	{Group: "apps", Kind: "DaemonSet"}:   daemonSet,
}

// RolloutStatus says what a workload is waiting for; empty where it has rolled out, where
// it rolls nothing out by itself (OnDelete), and for any other kind. The error is
// a *StuckError.
func RolloutStatus(u *unstructured.Unstructured) (string, error) {
	key := engine.KeyOf(u)
	waits, ok := workloads[key.GroupKind]
	n := numbers{u.Object}
	switch {
	case !ok || n.text("spec", "updateStrategy", "type") == "OnDelete":
		return "", nil
	case u.GetGeneration() > n.of("status", "observedGeneration"):
		return "its controller has not seen the change yet", nil
	case n.gaveUp():
		return "", &RolloutStalledError{Key: key, What: "it has exceeded its progress deadline"}
	}
	return waits(n), nil
}

func deployment(n numbers) string {
	replicas, updated := n.replicas(), n.of("status", "updatedReplicas")
	switch {
	case updated < replicas:
		return fmt.Sprintf("%d of %d replicas are updated", updated, replicas)
	case n.of("status", "replicas") > updated:
		return fmt.Sprintf("%d old replicas are still there", n.of("status", "replicas")-updated)
	case n.of("status", "availableReplicas") < updated:
		return fmt.Sprintf("%d of %d updated replicas are available", n.of("status", "availableReplicas"), updated)
	}
	return ""
}

func daemonSet(n numbers) string {
	desired := n.of("status", "desiredNumberScheduled")
	switch updated, available := n.of("status", "updatedNumberScheduled"), n.of("status", "numberAvailable"); {
	case updated < desired:
		return fmt.Sprintf("%d of %d Pods are updated", updated, desired)
	case available < desired:
		return fmt.Sprintf("%d of %d updated Pods are available", available, desired)
	}
	return ""
}

func statefulSet(n numbers) string {
	replicas, updated := n.replicas(), n.of("status", "updatedReplicas")
	partition := n.of("spec", "updateStrategy", "rollingUpdate", "partition")
	switch ready := n.of("status", "readyReplicas"); {
	case ready < replicas:
		return fmt.Sprintf("%d of %d Pods are ready", ready, replicas)
	case partition > 0 && updated < replicas-partition:
		return fmt.Sprintf("%d of %d Pods above the partition are updated", updated, replicas-partition)
	case partition > 0:
		return ""
	case n.text("status", "updateRevision") != n.text("status", "currentRevision"):
		return fmt.Sprintf("%d of %d Pods are updated", updated, replicas)
	}
	return ""
}

// numbers reads an object that anybody may have written.
type numbers struct{ object map[string]any }

func (n numbers) of(path ...string) int64 {
	v, _, err := unstructured.NestedInt64(n.object, path...)
	if err != nil {
		return 0
	}
	return v
}

func (n numbers) text(path ...string) string {
	v, _, err := unstructured.NestedString(n.object, path...)
	if err != nil {
		return ""
	}
	return v
}

// replicas are 1 unless the object says otherwise.
func (n numbers) replicas() int64 {
	if v, ok, err := unstructured.NestedInt64(n.object, "spec", "replicas"); ok && err == nil {
		return v
	}
	return 1
}

// gaveUp tells whether a Deployment has stopped to wait for itself.
func (n numbers) gaveUp() bool {
	conditions, _, err := unstructured.NestedSlice(n.object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Progressing" && condition["reason"] == "ProgressDeadlineExceeded" {
			return true
		}
	}
	return false
}
