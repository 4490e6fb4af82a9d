package workload

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const revisionHash = "controller-revision-hash"

// podOfStatefulSet returns the first Pod: it has a name, also as its host name, and volumes of the claims.
func podOfStatefulSet(w workload) object {
	ordinal, _, _ := unstructured.NestedInt64(w.object, "spec", "ordinals", "start")
	out, index := pod(w), strconv.FormatInt(ordinal, 10)
	name := w.name() + "-" + index
	out["metadata"].(object)["name"] = name
	set(out, "labels", "statefulset.kubernetes.io/pod-name", name)
	set(out, "labels", "apps.kubernetes.io/pod-index", index)
	set(out, "labels", revisionHash, w.name()+"-"+Unknown)
	spec := out["spec"].(object)
	spec["hostname"] = name
	delete(spec, "subdomain")
	if service := w.stringAt("spec", "serviceName"); service != "" {
		spec["subdomain"] = service
	}
	templates, _, _ := unstructured.NestedSlice(w.object, "spec", "volumeClaimTemplates")
	var volumes []any
	claimed := map[string]bool{}
	for _, raw := range templates {
		template, _ := raw.(object)
		claim := workload{template}.name()
		claimed[claim] = true
		volumes = append(volumes, object{
			"name":                  claim,
			"persistentVolumeClaim": object{"claimName": fmt.Sprintf("%s-%s-%d", claim, w.name(), ordinal)},
		})
	}
	own, _ := spec["volumes"].([]any)
	for _, raw := range own {
		v, _ := raw.(object)
		if name, _ := v["name"].(string); !claimed[name] {
			volumes = append(volumes, raw)
		}
	}
	if len(volumes) > 0 {
		spec["volumes"] = volumes
	}
	return out
}

// podOfDaemonSet tolerates the usual node taints, and is bound to an unknown node.
func podOfDaemonSet(w workload) object {
	out := pod(w)
	set(out, "labels", revisionHash, Unknown)
	if generation := w.stringAt("metadata", "annotations", "deprecated.daemonset.template.generation"); generation != "" {
		set(out, "labels", "pod-template-generation", generation)
	}
	spec := out["spec"].(object)
	tolerations, _ := spec["tolerations"].([]any)
	tolerate := func(condition, effect string) {
		wanted := object{"key": "node.kubernetes.io/" + condition, "operator": "Exists", "effect": effect}
		same := func(raw any) bool {
			t, _ := raw.(object)
			return t["key"] == wanted["key"] && t["effect"] == effect && t["operator"] == "Exists" && t["value"] == nil
		}
		if at := slices.IndexFunc(tolerations, same); at >= 0 {
			tolerations[at] = wanted // without its tolerationSeconds
			return
		}
		tolerations = append(tolerations, wanted)
	}
	tolerate("not-ready", "NoExecute")
	tolerate("unreachable", "NoExecute")
	for _, condition := range []string{"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"} {
		tolerate(condition, "NoSchedule")
	}
	if spec["hostNetwork"] == true {
		tolerate("network-unavailable", "NoSchedule")
	}
	spec["tolerations"] = tolerations
	affinity, _ := spec["affinity"].(object)
	node, _ := affinity["nodeAffinity"].(object)
	required, _ := node["requiredDuringSchedulingIgnoredDuringExecution"].(object)
	terms := []any{object{"matchFields": []any{object{
		"key": "metadata.name", "operator": "In", "values": []any{Unknown},
	}}}}
	required = merged(required, object{"nodeSelectorTerms": terms})
	spec["affinity"] = merged(affinity, object{"nodeAffinity": merged(node, object{"requiredDuringSchedulingIgnoredDuringExecution": required})})
	return out
}

func jobOfCronJob(w workload) object {
	template := workload{w.copied("spec", "jobTemplate")}
	metadata := object{}
	if labels := template.mapAt("metadata", "labels"); labels != nil {
		metadata["labels"] = labels
	}
	metadata["annotations"] = merged(template.mapAt("metadata", "annotations"), object{"batch.kubernetes.io/cronjob-scheduled-timestamp": Unknown})
	return w.owned(batchV1, "Job", w.name()+"-"+Unknown, metadata, template.mapAt("spec"))
}

// podOfJob has the labels that a server gives the template of a new Job, and the first index if it is
// Indexed.
func podOfJob(w workload) object {
	out := pod(w)
	metadata, spec := out["metadata"].(object), out["spec"].(object)
	if w.mapAt("spec")["manualSelector"] != true {
		labels, _ := metadata["labels"].(object)
		metadata["labels"] = merged(object{
			"job-name": w.name(), "batch.kubernetes.io/job-name": w.name(),
			"controller-uid": w.uid(), "batch.kubernetes.io/controller-uid": w.uid(),
		}, labels)
	}
	const tracking = "batch.kubernetes.io/job-tracking"
	finalizers, _ := metadata["finalizers"].([]any)
	if !slices.Contains(finalizers, any(tracking)) {
		metadata["finalizers"] = append(finalizers, tracking)
	}
	if w.stringAt("spec", "completionMode") != "Indexed" {
		return out
	}
	const index = "batch.kubernetes.io/job-completion-index"
	set(out, "annotations", index, "0")
	set(out, "labels", index, "0")
	if w.mapAt("spec")["backoffLimitPerIndex"] != nil {
		set(out, "annotations", "batch.kubernetes.io/job-index-failure-count", "0")
	}
	const longest = 58 // of a name prefix that a server completes
	name := w.name()
	metadata["generateName"] = name[:min(len(name), longest-len("-0-"))] + "-0-"
	spec["hostname"] = name + "-0"
	const variable = "JOB_COMPLETION_INDEX"
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for _, raw := range containers {
			container, _ := raw.(object)
			env, _ := container["env"].([]any)
			has := slices.ContainsFunc(env, func(raw any) bool { v, _ := raw.(object); return v["name"] == variable })
			if container != nil && !has {
				container["env"] = append(env, object{
					"name":      variable,
					"valueFrom": object{"fieldRef": object{"fieldPath": "metadata.labels['" + index + "']"}},
				})
			}
		}
	}
	return out
}
