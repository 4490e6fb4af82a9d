package impact

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// workload is a kind that makes Pods from a template.
type workload struct {
	template string
	// pods says what becomes of the Pods when it changes.
	pods func(object map[string]any) consequence
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
	r := w.pods(c.Before.Object)
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

func deploymentPods(o map[string]any) consequence {
	n := running(o, 1)
	switch {
	case n == 0:
		return consequence{}
	case boolOf(valueAt(o, "spec", "paused")):
		return paused("Deployment", n)
	case textOf(valueAt(o, "spec", "strategy", "type")) == "Recreate":
		return consequence{pods: n, text: fmt.Sprintf("all %s would be stopped, then started anew (Recreate)", wording.Plural(n, "Pod"))}
	}
	return replaced(n)
}

// statefulSetPods: the partition counts from the first Pod, so the last ones are
// replaced (updateStatefulSet in pkg/controller/statefulset).
func statefulSetPods(o map[string]any) consequence {
	n := running(o, 1)
	if n == 0 {
		return consequence{}
	}
	if textOf(valueAt(o, "spec", "updateStrategy", "type")) == "OnDelete" {
		return onDelete(n)
	}
	kept := min(n, int(numberOf(valueAt(o, "spec", "updateStrategy", "rollingUpdate", "partition"), 0)))
	switch kept {
	case 0:
		return replaced(n)
	case n:
		return consequence{text: "no Pod would be replaced now: the partition of the update strategy holds back all"}
	}
	return consequence{pods: n - kept, text: fmt.Sprintf("%s would be replaced, and the partition of the update strategy holds back %d", wording.Plural(n-kept, "Pod"), kept)}
}

func daemonSetPods(o map[string]any) consequence {
	n := int(numberOf(valueAt(o, "status", "currentNumberScheduled"), 0))
	if _, known := observed(o); !known {
		return consequence{text: "the Pod on each node would be replaced"}
	}
	switch {
	case n == 0:
		return consequence{}
	case textOf(valueAt(o, "spec", "updateStrategy", "type")) == "OnDelete":
		return onDelete(n)
	}
	return replaced(n)
}

// keptPods: a ReplicaSet only uses its template for the Pods that it makes.
func keptPods(o map[string]any) consequence {
	n := running(o, 1)
	if n == 0 {
		return consequence{}
	}
	return consequence{
		brief:  "their Pods would not change: only Pods made from now on follow the new template",
		text:   wording.Plural(n, "Pod") + " would not change: only Pods made from now on follow the new template",
		advice: "delete the Pods to have them made anew",
	}
}

func nextRun(map[string]any) consequence {
	return consequence{text: "running Jobs stay as they are: the change takes effect with the next run"}
}

// argoRolloutPods: a Rollout may take its template from elsewhere.
func argoRolloutPods(o map[string]any) consequence {
	n := running(o, 1)
	switch {
	case n == 0 || valueAt(o, "spec", "workloadRef") != nil:
		return consequence{}
	case boolOf(valueAt(o, "spec", "paused")):
		return paused("Rollout", n)
	}
	strategy := "canary"
	if valueAt(o, "spec", "strategy", "blueGreen") != nil {
		strategy = "blue-green"
	}
	return consequence{pods: n, text: fmt.Sprintf("%s would be replaced, step by step (%s)", wording.Plural(n, "Pod"), strategy)}
}

// deploymentConfigPods: without a ConfigChange trigger nothing rolls out on its own.
// A config without triggers has that one by default.
func deploymentConfigPods(o map[string]any) consequence {
	n := running(o, 1)
	triggers, known := valueAt(o, "spec", "triggers").([]any)
	automatic := !known
	for _, t := range triggers {
		m, _ := t.(map[string]any)
		automatic = automatic || textOf(m["type"]) == "ConfigChange"
	}
	switch {
	case n == 0:
		return consequence{}
	case !automatic || boolOf(valueAt(o, "spec", "paused")):
		return consequence{
			brief: "their Pods would be replaced with the next deployment",
			text:  wording.Plural(n, "Pod") + " would be replaced with the next deployment",
		}
	}
	return replaced(n)
}

func replaced(n int) consequence {
	return consequence{pods: n, text: wording.Plural(n, "Pod") + " would be replaced"}
}

func paused(kind string, n int) consequence {
	what := "the " + kind + " is paused: "
	return consequence{
		brief: what + "its Pods would be replaced when it is resumed",
		text:  what + wording.Plural(n, "Pod") + " would be replaced when it is resumed",
	}
}

func onDelete(n int) consequence {
	return consequence{
		brief:  "their Pods would not change until deleted (OnDelete)",
		text:   wording.Plural(n, "Pod") + " would not change until deleted (OnDelete)",
		advice: "delete the Pods to have them made anew",
	}
}

// running is how many Pods a workload has: those that its controller counted, else
// those that it is to have.
func running(o map[string]any, fallback int64) int {
	if status, known := observed(o); known {
		return int(numberOf(status["replicas"], 0))
	}
	return int(numberOf(valueAt(o, "spec", "replicas"), fallback))
}

// observed is the status, and whether a controller has ever written it.
func observed(o map[string]any) (map[string]any, bool) {
	status, _ := o["status"].(map[string]any)
	_, known := status["observedGeneration"]
	return status, known
}
