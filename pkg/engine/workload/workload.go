// Package workload makes the objects that the controllers of Kubernetes create for workloads, as they write
// them: before additions by admission, a scheduler or a kubelet.
//
// It follows pkg/controller of Kubernetes 1.36: GetPodFromTemplate, and the work of the controllers of
// Deployments, StatefulSets, DaemonSets, Jobs and CronJobs before and after it.
package workload

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// Unknown stands for a value that is known only at creation: the hash of a template, which depends on the
// version of the cluster; the UID of a future object; a node; a time.
const Unknown = "unknown-until-created"

const (
	appsV1  = "apps/v1"
	batchV1 = "batch/v1"
)

type object = map[string]any

// controller makes objects of one kind of workload.
type controller struct {
	of, makes schema.GroupKind
	account   string // of its requests, in kube-system
	make      func(workload) object
}

//nolint:gochecknoglobals // an immutable table
var controllers = []controller{
	{kind("apps", "Deployment"), kind("apps", "ReplicaSet"), "deployment-controller", replicaSet},
	{kind("apps", "ReplicaSet"), kind("", "Pod"), "replicaset-controller", pod},
	{kind("apps", "StatefulSet"), kind("", "Pod"), "statefulset-controller", podOfStatefulSet},
	{kind("apps", "DaemonSet"), kind("", "Pod"), "daemon-set-controller", podOfDaemonSet},
	{kind("batch", "CronJob"), kind("batch", "Job"), "cronjob-controller", jobOfCronJob},
	{kind("batch", "Job"), kind("", "Pod"), "job-controller", podOfJob},
	{kind("", "ReplicationController"), kind("", "Pod"), "replication-controller", pod},
}

func kind(group, name string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: name} }

func controllerOf(gk schema.GroupKind) *controller {
	at := slices.IndexFunc(controllers, func(c controller) bool { return c.of == gk })
	if at < 0 {
		return nil
	}
	return &controllers[at]
}

// Is reports whether objects of the kind are workloads, for which Make makes others.
func Is(gk schema.GroupKind) bool { return controllerOf(gk) != nil }

// Make returns the next object that the controller of a workload would create for it, with the defaults of a
// server, and the creating user. It is false for an object that is not a workload, has no template, or
// creates nothing more: it is being deleted, or has finished.
func Make(of *unstructured.Unstructured) (*unstructured.Unstructured, engine.UserInfo, bool) {
	gk := of.GroupVersionKind().GroupKind()
	c := controllerOf(gk)
	if c == nil || of.GetDeletionTimestamp() != nil || finished(of) {
		return nil, engine.UserInfo{}, false
	}
	w := workload{openapi.AsStored(of).Object}
	if w.mapAt("spec", "template", "spec") == nil &&
		w.mapAt("spec", "jobTemplate", "spec", "template", "spec") == nil {
		return nil, engine.UserInfo{}, false
	}
	made := openapi.AsStored(&unstructured.Unstructured{Object: c.make(w)})
	const accounts = "system:serviceaccounts"
	return made, engine.UserInfo{
		Username: "system:serviceaccount:kube-system:" + c.account, Groups: []string{accounts, accounts + ":kube-system", "system:authenticated"},
	}, true
}

// Controlled reports whether another workload, which is evaluated instead, has made the object.
func Controlled(u *unstructured.Unstructured) bool {
	for _, owner := range u.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller &&
			Is(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()) {
			return true
		}
	}
	return false
}

// finished reports whether a Job has ended.
func finished(u *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return u.GetKind() == "Job" && slices.ContainsFunc(conditions, func(raw any) bool {
		c, _ := raw.(object)
		return (c["type"] == "Complete" || c["type"] == "Failed") && c["status"] == "True"
	})
}

// Selections adds the workloads for which objects in the selections may be made.
func Selections(of []engine.Selection) []engine.Selection {
	out := slices.Clone(of)
	for i := 0; i < len(out); i++ { // also for the added ones
		for _, c := range controllers {
			made := engine.Selection{Group: c.makes.Group, Kind: c.makes.Kind}
			wanted := engine.Selection{Group: c.of.Group, Kind: c.of.Kind, Namespace: out[i].Namespace}
			if one := out[i]; one.Subresource == "" && one.MayMeet(made) && !slices.Contains(out, wanted) {
				out = append(out, wanted)
			}
		}
	}
	return out
}

// workload is an object for which others are made.
type workload struct{ object }

func (w workload) mapAt(path ...string) object {
	out, _, _ := unstructured.NestedFieldNoCopy(w.object, path...)
	fields, _ := out.(object)
	return fields
}

func (w workload) stringAt(path ...string) string {
	out, _, _ := unstructured.NestedString(w.object, path...)
	return out
}

func (w workload) name() string { return w.stringAt("metadata", "name") }

func (w workload) uid() string {
	if uid := w.stringAt("metadata", "uid"); uid != "" {
		return uid
	}
	return Unknown
}

// owner returns the controller's reference to the workload.
func (w workload) owner() []any {
	return []any{object{
		"apiVersion": w.stringAt("apiVersion"), "kind": w.stringAt("kind"), "name": w.name(), "uid": w.uid(),
		"controller": true, "blockOwnerDeletion": true,
	}}
}

// copied returns a part of the workload that may be changed; empty if missing.
func (w workload) copied(path ...string) object {
	out := runtime.DeepCopyJSON(w.mapAt(path...))
	if out == nil {
		return object{}
	}
	return out
}

// pod returns the Pod of GetPodFromTemplate in the namespace of the workload, with the default account if it
// names none.
func pod(w workload) object {
	template := w.copied("spec", "template")
	written, _ := template["metadata"].(object)
	metadata := object{"generateName": prefix(w.name()), "ownerReferences": w.owner()}
	for _, name := range []string{"labels", "annotations", "finalizers"} {
		if v, has := written[name]; has {
			metadata[name] = v
		}
	}
	if namespace := w.stringAt("metadata", "namespace"); namespace != "" {
		metadata["namespace"] = namespace
	}
	spec, _ := template["spec"].(object)
	if name, _ := spec["serviceAccountName"].(string); name == "" {
		spec["serviceAccountName"] = "default"
	}
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
}

// prefix is the name prefix of a workload's objects: without a dash where the name is too long.
func prefix(name string) string {
	if len(name) >= 253 {
		return name
	}
	return name + "-"
}

func set(made object, field, key, value string) {
	metadata, _ := made["metadata"].(object)
	entries, _ := metadata[field].(object)
	if entries == nil {
		entries = object{}
		metadata[field] = entries
	}
	entries[key] = value
}

// replicaSet returns the ReplicaSet of a Deployment's next rollout, with an unknown hash of the template.
func replicaSet(w workload) object {
	const hash = "pod-template-hash"
	template, selector := w.copied("spec", "template"), w.copied("spec", "selector")
	written, _ := template["metadata"].(object)
	if written == nil {
		written = object{}
		template["metadata"] = written
	}
	set(template, "labels", hash, Unknown)
	matched, _ := selector["matchLabels"].(object)
	selector["matchLabels"] = merged(matched, object{hash: Unknown})
	annotations := w.copied("metadata", "annotations")
	for _, name := range []string{
		"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision-history", "deprecated.deployment.rollback.to",
	} {
		delete(annotations, name)
	}
	replicas, _, _ := unstructured.NestedInt64(w.object, "spec", "replicas")
	for _, name := range []string{"revision", "desired-replicas", "max-replicas"} {
		annotations["deployment.kubernetes.io/"+name] = Unknown
	}
	spec := object{"replicas": replicas, "selector": selector, "template": template}
	if seconds, has := w.mapAt("spec")["minReadySeconds"]; has {
		spec["minReadySeconds"] = seconds
	}
	labels, _ := written["labels"].(object)
	return w.owned(appsV1, "ReplicaSet", w.name()+"-"+Unknown,
		object{"labels": maps.Clone(labels), "annotations": annotations}, spec)
}

// owned returns an object, other than a Pod, that a controller makes.
func (w workload) owned(apiVersion, kind, name string, metadata, spec object) object {
	metadata["name"], metadata["ownerReferences"] = name, w.owner()
	if namespace := w.stringAt("metadata", "namespace"); namespace != "" {
		metadata["namespace"] = namespace
	}
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "spec": spec}
}

func merged(all ...object) object {
	out := object{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}
