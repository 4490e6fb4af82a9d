package impact

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// workload is a kind that makes Pods from a template.
type workload struct {
	template string
	// pods describes the effect of a change on n Pods; without Text for no effect.
	pods func(object map[string]any, n int) engine.Impact
}

// workloads are the kinds with a known template. Any changed field counts: their controllers compare the
// template as a whole.
var workloads = map[schema.GroupKind]workload{ //nolint:gochecknoglobals // an immutable table
	{Group: "apps", Kind: "Deployment"}:                    {"spec.template", deploymentPods},
	{Group: "apps", Kind: "StatefulSet"}:                   {"spec.template", statefulSetPods},
	{Group: "apps", Kind: "DaemonSet"}:                     {"spec.template", daemonSetPods},
	{Group: "apps", Kind: "ReplicaSet"}:                    {"spec.template", keptPods},
	{Group: "", Kind: "ReplicationController"}:             {"spec.template", keptPods},
	{Group: "batch", Kind: "CronJob"}:                      {"spec.jobTemplate", nextRun},
	{Group: "argoproj.io", Kind: "Rollout"}:                {"spec.template", argoRolloutPods},
	{Group: "apps.openshift.io", Kind: "DeploymentConfig"}: {"spec.template", deploymentConfigPods},
}

// Rollout returns the Pods that restart. A change that the server will refuse restarts none.
func Rollout(c *engine.Change) []engine.Impact {
	if pod := (schema.GroupKind{Kind: "Pod"}); c.Subject.GroupKind == pod {
		return restartedInPlace(c)
	}
	w, ok := workloads[c.Subject.GroupKind]
	if !ok {
		return nil
	}
	fields := fieldsAt(c, func(place string) bool { return meet(place, w.template) })
	n := running(c.Before.Object)
	if len(fields) == 0 || n == 0 {
		return nil
	}
	out := w.pods(c.Before.Object, n)
	if out.Text == "" {
		return nil
	}
	if out.Pods > 0 {
		out.Brief = "Pods would be replaced"
	}
	out.Code, out.Fields = engine.ImpactRollout, fields
	return []engine.Impact{out}
}

// Restarted returns how many Pods restart because of a change.
func Restarted(c *engine.Change) int {
	n := 0
	for _, impact := range Rollout(c) {
		n += impact.Pods
	}
	return n
}

// restartedInPlace: the kubelet restarts a container whose image changes, without a new Pod. Init containers
// do not run again.
func restartedInPlace(c *engine.Change) []engine.Impact {
	fields := within(c, "spec.containers[*].image")
	if len(fields) == 0 {
		return nil
	}
	return []engine.Impact{{
		Code: engine.ImpactRollout, Fields: fields, Pods: 1,
		Text: "the kubelet restarts " + wording.Plural(len(fields), "container") + " of this Pod in place",
	}}
}

func deploymentPods(o map[string]any, n int) engine.Impact {
	switch {
	case valueOf[bool](o, "spec", "paused"):
		return later(n, "its", "the Deployment is paused: %s would be replaced when it is resumed")
	case valueOf[string](o, "spec", "strategy", "type") == "Recreate":
		return engine.Impact{Pods: n, Text: fmt.Sprintf("all %s would be stopped, then replaced (Recreate)", wording.Plural(n, "Pod"))}
	}
	return replaced(n, "")
}

// statefulSetPods: the partition counts from the first Pod, so the last ones are replaced (updateStatefulSet
// in pkg/controller/statefulset).
func statefulSetPods(o map[string]any, n int) engine.Impact {
	if valueOf[string](o, "spec", "updateStrategy", "type") == "OnDelete" {
		return onDelete(n)
	}
	kept := min(n, int(numberOf(valueAt(o, "spec", "updateStrategy", "rollingUpdate", "partition"), 0)))
	switch kept {
	case 0:
		return replaced(n, "")
	case n:
		return engine.Impact{Text: "no Pod would be replaced now: the partition of the update strategy holds back all"}
	}
	return replaced(n-kept, fmt.Sprintf(", and the partition of the update strategy holds back %d", kept))
}

func daemonSetPods(o map[string]any, n int) engine.Impact {
	switch _, known := observed(o); {
	case !known:
		return engine.Impact{Text: "the Pod on each node would be replaced"}
	case valueOf[string](o, "spec", "updateStrategy", "type") == "OnDelete":
		return onDelete(n)
	}
	return replaced(n, "")
}

// keptPods: a ReplicaSet only uses its template for the Pods that it makes.
func keptPods(_ map[string]any, n int) engine.Impact {
	out := later(n, "their", "%s would not change: only Pods made from now on follow the new template")
	out.Advice = "delete the Pods to replace them"
	return out
}

func nextRun(map[string]any, int) engine.Impact {
	return engine.Impact{Text: "running Jobs stay as they are: the change takes effect with the next run"}
}

// argoRolloutPods: a Rollout may take its template from elsewhere.
func argoRolloutPods(o map[string]any, n int) engine.Impact {
	switch {
	case valueAt(o, "spec", "workloadRef") != nil:
		return engine.Impact{}
	case valueOf[bool](o, "spec", "paused"):
		return later(n, "its", "the Rollout is paused: %s would be replaced when it is resumed")
	case valueAt(o, "spec", "strategy", "blueGreen") != nil:
		return replaced(n, ", step by step (blue-green)")
	}
	return replaced(n, ", step by step (canary)")
}

// deploymentConfigPods: without a ConfigChange trigger, which is the default, nothing rolls out on its own.
func deploymentConfigPods(o map[string]any, n int) engine.Impact {
	triggers, known := valueAt(o, "spec", "triggers").([]any)
	automatic := !known || slices.ContainsFunc(triggers, func(t any) bool {
		m, _ := t.(map[string]any)
		return valueOf[string](m, "type") == "ConfigChange"
	})
	if !automatic || valueOf[bool](o, "spec", "paused") {
		return later(n, "their", "%s would be replaced with the next deployment")
	}
	return replaced(n, "")
}

func replaced(n int, how string) engine.Impact {
	return engine.Impact{Pods: n, Text: wording.Plural(n, "Pod") + " would be replaced" + how}
}

// later describes Pods that stay for now, of one object or of several.
func later(n int, whose, says string) engine.Impact {
	return engine.Impact{
		Text:  fmt.Sprintf(says, wording.Plural(n, "Pod")),
		Brief: fmt.Sprintf(says, whose+" Pods"),
	}
}

func onDelete(n int) engine.Impact {
	out := later(n, "their", "%s would not change until deleted (OnDelete)")
	out.Advice = "delete the Pods to replace them"
	return out
}

// running returns the number of Pods of a workload: as its controller counted them, or else as specified.
func running(o map[string]any) int {
	if status, known := observed(o); known {
		return int(numberOf(status["replicas"], numberOf(status["currentNumberScheduled"], 0)))
	}
	return int(numberOf(valueAt(o, "spec", "replicas"), 1))
}

// observed returns the status, and whether a controller has ever written it.
func observed(o map[string]any) (map[string]any, bool) {
	status := valueOf[map[string]any](o, "status")
	_, known := status["observedGeneration"]
	return status, known
}
