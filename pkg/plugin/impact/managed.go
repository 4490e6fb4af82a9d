package impact

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Tool keeps objects as they are described elsewhere.
type Tool string

// The tools. Controller is the one in the object's ownerReferences.
const (
	Controller Tool = "controller"
	ArgoCD     Tool = "Argo CD"
	Flux       Tool = "Flux"
	Helm       Tool = "Helm"
	Kapp       Tool = "kapp"
)

// Manager keeps an object in its desired state: changes of others are reverted, or lost when the object is
// replaced.
type Manager struct {
	Tool Tool
	// Name of the manager: "application shop", "ReplicaSet web-7f9"; empty if unknown.
	Name string
	// Source is what to change instead.
	Source string

	by engine.ObjectKey // the manager's object, which names the Source; its Namespace may be unknown
}

// String returns "Argo CD application shop" or "ReplicaSet web-7f9".
func (m Manager) String() string {
	if m.Tool == Controller {
		return m.Name
	}
	return strings.TrimSpace(string(m.Tool) + " " + m.Name)
}

// Managed returns the managers of an object by the labels and annotations that they leave on it. An object
// with an owner controller has only that manager, as it copies the labels of its owner.
func Managed(u *unstructured.Unstructured) []Manager {
	if u == nil {
		return nil
	}
	if owner := metav1.GetControllerOfNoCopy(u); owner != nil {
		return []Manager{controller(u, owner)}
	}
	var out []Manager
	left := marks{u, u.GetLabels(), u.GetAnnotations()}
	for _, find := range []func(marks) (Manager, bool){argoCD, flux, helm, kapp} {
		if m, ok := find(left); ok {
			out = append(out, m)
		}
	}
	return out
}

// Ignored makes all rules ignore managed objects.
func Ignored(u *unstructured.Unstructured) engine.Ignored {
	by := Managed(u)
	switch {
	case len(by) == 0:
		return engine.Ignored{}
	case by[0].Tool == Controller:
		return engine.Ignored{Rules: "true", Why: "because a controller manages it"}
	}
	return engine.Ignored{Rules: "true", Why: "because " + string(by[0].Tool) + " manages it"}
}

// Workload returns what to change instead of an object with an owner controller: the controller or, for a
// Pod of a Deployment, the Deployment. It is "" without a controller, and for nil.
func Workload(u *unstructured.Unstructured) string {
	if u == nil || metav1.GetControllerOfNoCopy(u) == nil {
		return ""
	}
	return Managed(u)[0].Source
}

// templateHashes are the labels of a ReplicaSet, and its Pods, with the hash that follows the name of its
// owner.
var templateHashes = []struct{ label, maker string }{ //nolint:gochecknoglobals // an immutable table
	{"pod-template-hash", "Deployment"},
	{"rollouts-pod-template-hash", "Rollout"},
}

func controller(u *unstructured.Unstructured, owner *metav1.OwnerReference) Manager {
	m := Manager{Tool: Controller, Name: owner.Kind + " " + owner.Name}
	m.Source = m.Name
	if owner.Kind != "ReplicaSet" {
		return m
	}
	for _, t := range templateHashes {
		hash := u.GetLabels()[t.label]
		if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" && name != "" {
			m.Source = t.maker + " " + name
		}
	}
	return m
}

// marks are the labels and annotations by which tools recognise their objects.
type marks struct {
	object              *unstructured.Unstructured
	labels, annotations map[string]string
}

// argoCD: https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/.
// The tracking annotation names the object; on any other object it is a copy. The
// label is common among charts that Argo CD never saw, so it counts only together
// with Argo CD's field manager.
func argoCD(m marks) (Manager, bool) {
	found := func(instance string) (Manager, bool) {
		out := Manager{Tool: ArgoCD, Source: "its source in Git"}
		if instance != "" {
			out.Name = "application " + instance
		}
		out.by.Group, out.by.Kind, out.by.Name = "argoproj.io", application, instance
		// an application in any namespace
		if namespace, name, qualified := strings.Cut(instance, "_"); qualified {
			out.by.Namespace, out.by.Name = namespace, name
		}
		return out, true
	}
	if id := strings.SplitN(m.annotations["argocd.argoproj.io/tracking-id"], ":", 3); len(id) == 3 &&
		m.namesRelease(id[1], id[2]) {
		return found(id[0])
	}
	if instance := m.labels["argocd.argoproj.io/instance"]; instance != "" {
		return found(instance)
	}
	if m.writtenBy("argocd-controller") || m.writtenBy("argocd-application-controller") {
		return found(m.labels["app.kubernetes.io/instance"])
	}
	return Manager{}, false
}

// namesRelease reports whether "group/kind" and "namespace/name" are the object's own. The
// namespace of a cluster-scoped object is its application's.
func (m marks) namesRelease(groupKind, fullName string) bool {
	group, kind, _ := strings.Cut(groupKind, "/")
	namespace, name, _ := strings.Cut(fullName, "/")
	key := engine.KeyOf(m.object)
	return group == key.Group && kind == key.Kind && name == key.Name &&
		(key.Namespace == "" || namespace == key.Namespace)
}

func (m marks) writtenBy(manager string) bool {
	entries, _, _ := unstructured.NestedFieldNoCopy(m.object.Object, "metadata", "managedFields")
	list, _ := entries.([]any) // GetManagedFields goes through JSON, which takes longer than most rules
	return slices.ContainsFunc(list,
		func(entry any) bool { e, _ := entry.(map[string]any); return e["manager"] == manager })
}

// flux: https://fluxcd.io/flux/components/kustomize/kustomizations/. An object may opt out.
func flux(m marks) (Manager, bool) {
	const kustomize, release = "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"
	found := func(group, kind, source string) (Manager, bool) {
		by := engine.ObjectKey{Namespace: m.labels[group+"/namespace"], Name: m.labels[group+"/name"]}
		by.Group, by.Kind = group, kind
		return Manager{Tool: Flux, Name: kind + " " + qualified(by.Namespace, by.Name), Source: source, by: by},
			true
	}
	if m.labels[release+"/name"] != "" {
		return found(release, helmRelease, "the HelmRelease")
	}
	name := m.labels[kustomize+"/name"]
	switch {
	case name == "", m.labels[kustomize+"/reconcile"] == "disabled",
		m.annotations[kustomize+"/reconcile"] == "disabled":
		return Manager{}, false
	}
	switch ssa := m.annotations[kustomize+"/ssa"]; {
	case strings.EqualFold(ssa, "Ignore"), strings.EqualFold(ssa, "IfNotPresent"):
		return Manager{}, false
	}
	return found(kustomize, kustomization, "its source in Git")
}

// helm: what `helm` itself requires of an object before it adopts it. A release of Flux is reported as
// Flux's.
func helm(m marks) (Manager, bool) {
	name := m.annotations["meta.helm.sh/release-name"]
	if name == "" || m.labels["app.kubernetes.io/managed-by"] != "Helm" ||
		m.labels["helm.toolkit.fluxcd.io/name"] != "" {
		return Manager{}, false
	}
	source := "the values or the chart " + m.labels["helm.sh/chart"]
	return Manager{Tool: Helm, Name: "release " +
		qualified(m.annotations["meta.helm.sh/release-namespace"], name), Source: strings.TrimSpace(source)}, true
}

// kapp: the identity names the object, "v1;namespace/group/Kind/name;apiVersion".
func kapp(m marks) (Manager, bool) {
	label := m.labels["kapp.k14s.io/app"]
	identity := strings.Split(m.annotations["kapp.k14s.io/identity"], ";")
	if label == "" || len(identity) != 3 {
		return Manager{}, false
	}
	parts := strings.Split(identity[1], "/")
	if len(parts) != 4 || !m.namesRelease(parts[1]+"/"+parts[2], parts[0]+"/"+parts[3]) {
		return Manager{}, false
	}
	return Manager{Tool: Kapp, Name: "app " + label, Source: "its manifests"}, true
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// managed returns the managers that will revert the change. The error is the context's.
func (r *Reviewer) managed(ctx context.Context, u *unstructured.Unstructured) ([]engine.Impact, error) {
	var out []engine.Impact
	for _, m := range Managed(u) {
		one, several := m.String(), string(m.Tool)
		will := "it sets back what differs from its source"
		switch m.Tool {
		case Controller:
			kind, _, _ := strings.Cut(m.Name, " ")
			several = "a " + kind
			will = "it may revert the change, which is lost when the object is replaced"
		case Helm:
			will = "its next upgrade may set the change back"
		}
		if err := r.locate(ctx, &m); err != nil {
			return nil, err
		}
		const left = "left alone without --include-managed (%s): %s"
		i := engine.Impact{
			Code: engine.ImpactManaged, Owner: m.String(), Text: fmt.Sprintf(left, one, will),
			Brief:  fmt.Sprintf(left, several, will),
			Advice: "change " + m.Source + " instead",
		}
		if m.Tool != Controller {
			i.Source = m.Source
		}
		out = append(out, i)
	}
	return out, nil
}
