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
	// pods says what becomes of the Pods, of which there are n, when it changes.
	pods func(object map[string]any, n int) consequence
}

// consequence is what a new template does to the Pods that there are.
type consequence struct {
	pods         int // that restart
	text, advice string
	brief        string // as in engine.Impact
}

// workloads are the kinds whose template is known. Which fields of it changed does
// not matter: their controllers compare it as a whole.
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

// rollout returns which Pods restart. A change that the server will refuse restarts none.
func rollout(c *engine.Change) []engine.Impact {
	if pod := (schema.GroupKind{Kind: "Pod"}); c.Subject.GroupKind == pod {
		return restartedInPlace(c)
	}
	w, ok := workloads[c.Subject.GroupKind]
	if !ok {
		return nil
	}
	fields := touching(c, w.template)
	if len(fields) == 0 {
		return nil
	}
	n := running(c.Before.Object)
	if n == 0 {
		return nil
	}
	r := w.pods(c.Before.Object, n)
	if r.text == "" {
		return nil
	}
	if r.pods > 0 {
		r.brief = "Pods would be replaced"
	}
	return []engine.Impact{{Code: engine.ImpactRollout, Text: r.text, Brief: r.brief, Advice: r.advice, Fields: fields, Pods: r.pods}}
}

// restartedInPlace: the kubelet restarts a container whose image changes, without
// a new Pod. Init containers do not run again.
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

func deploymentPods(o map[string]any, n int) consequence {
	switch {
	case boolOf(valueAt(o, "spec", "paused")):
		return later(n, "its", "the Deployment is paused: %s would be replaced when it is resumed")
	case textOf(valueAt(o, "spec", "strategy", "type")) == "Recreate":
		return consequence{pods: n, text: fmt.Sprintf("all %s would be stopped, then started anew (Recreate)", wording.Plural(n, "Pod"))}
	}
	return replaced(n, "")
}

// statefulSetPods: the partition counts from the first Pod, so the last ones are
// replaced (updateStatefulSet in pkg/controller/statefulset).
func statefulSetPods(o map[string]any, n int) consequence {
	if textOf(valueAt(o, "spec", "updateStrategy", "type")) == "OnDelete" {
		return onDelete(n)
	}
	kept := min(n, int(numberOf(valueAt(o, "spec", "updateStrategy", "rollingUpdate", "partition"), 0)))
	switch kept {
	case 0:
		return replaced(n, "")
	case n:
		return consequence{text: "no Pod would be replaced now: the partition of the update strategy holds back all"}
	}
	return replaced(n-kept, fmt.Sprintf(", and the partition of the update strategy holds back %d", kept))
}

func daemonSetPods(o map[string]any, n int) consequence {
	switch _, known := observed(o); {
	case !known:
		return consequence{text: "the Pod on each node would be replaced"}
	case textOf(valueAt(o, "spec", "updateStrategy", "type")) == "OnDelete":
		return onDelete(n)
	}
	return replaced(n, "")
}

// keptPods: a ReplicaSet only uses its template for the Pods that it makes.
func keptPods(_ map[string]any, n int) consequence {
	out := later(n, "their", "%s would not change: only Pods made from now on follow the new template")
	out.advice = "delete the Pods to have them made anew"
	return out
}

func nextRun(map[string]any, int) consequence {
	return consequence{text: "running Jobs stay as they are: the change takes effect with the next run"}
}

// argoRolloutPods: a Rollout may take its template from elsewhere.
func argoRolloutPods(o map[string]any, n int) consequence {
	switch {
	case valueAt(o, "spec", "workloadRef") != nil:
		return consequence{}
	case boolOf(valueAt(o, "spec", "paused")):
		return later(n, "its", "the Rollout is paused: %s would be replaced when it is resumed")
	case valueAt(o, "spec", "strategy", "blueGreen") != nil:
		return replaced(n, ", step by step (blue-green)")
	}
	return replaced(n, ", step by step (canary)")
}

// deploymentConfigPods: without a ConfigChange trigger nothing rolls out on its own.
// A config without triggers has that one by default.
func deploymentConfigPods(o map[string]any, n int) consequence {
	triggers, known := valueAt(o, "spec", "triggers").([]any)
	automatic := !known || slices.ContainsFunc(triggers, func(t any) bool {
		m, _ := t.(map[string]any)
		return textOf(m["type"]) == "ConfigChange"
	})
	if !automatic || boolOf(valueAt(o, "spec", "paused")) {
		return later(n, "their", "%s would be replaced with the next deployment")
	}
	return replaced(n, "")
}

func replaced(n int, how string) consequence {
	return consequence{pods: n, text: wording.Plural(n, "Pod") + " would be replaced" + how}
}

// later says what becomes of Pods that stay as they are for now, of one object or of several.
func later(n int, whose, says string) consequence {
	return consequence{text: fmt.Sprintf(says, wording.Plural(n, "Pod")), brief: fmt.Sprintf(says, whose+" Pods")}
}

func onDelete(n int) consequence {
	out := later(n, "their", "%s would not change until deleted (OnDelete)")
	out.advice = "delete the Pods to have them made anew"
	return out
}

// running is how many Pods a workload has: those that its controller counted, else
// those that it is to have.
func running(o map[string]any) int {
	if status, known := observed(o); known {
		return int(numberOf(status["replicas"], numberOf(status["currentNumberScheduled"], 0)))
	}
	return int(numberOf(valueAt(o, "spec", "replicas"), 1))
}

// observed is the status, and whether a controller has ever written it.
func observed(o map[string]any) (map[string]any, bool) {
	status, _ := o["status"].(map[string]any)
	_, known := status["observedGeneration"]
	return status, known
}
