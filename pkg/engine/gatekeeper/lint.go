package gatekeeper

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// lintGenerated warns of mutators for generated objects if nothing is generated.
func lintGenerated(mutators []*mutator) {
	for _, m := range mutators {
		if m.criteria.Source == sourceGenerated {
			m.source.Lint("objects of a cluster are never Generated, so the mutator does nothing here: --expand shows what it does to what ExpansionTemplates generate")
		}
	}
}

func lintApplyTo(f *policydecode.Fields, a applyTo) {
	for _, part := range []struct {
		name string
		list []string
	}{{"groups", a.Groups}, {"versions", a.Versions}, {"kinds", a.Kinds}} {
		for _, text := range part.list {
			if strings.Contains(text, "*") {
				f.At(part.name).Lint("applyTo takes no wildcards: %q matches nothing", text)
			}
		}
	}
	for _, version := range a.Versions {
		if strings.Contains(version, "/") {
			f.At("versions").Lint("%q matches nothing: the group stands in groups", version)
		}
	}
	for _, kind := range a.Kinds {
		if group := groupOf(kind); group != "" && slices.Equal(a.Groups, []string{""}) {
			f.At("groups").Lint("%s is in the group %q, not in the core group, so that it is not matched", kind, group)
		}
	}
}

// groupOf returns the group of kinds that are often mistaken for core kinds.
func groupOf(kind string) string {
	switch kind {
	case "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet":
		return "apps"
	case "CronJob", "Job":
		return "batch"
	case "Ingress", "NetworkPolicy":
		return "networking.k8s.io"
	}
	return ""
}

func (m *mutator) lint() {
	c := &m.criteria
	filters := len(c.Namespaces) > 0 || c.NamespaceLabels != nil
	if filters && c.Scope != scopeNamespaced && slices.ContainsFunc(m.types(), reachesCluster) {
		m.location.Lint("namespaces and namespaceSelector are taken for \"only there\" here, but Gatekeeper's webhook " +
			"also mutates objects that are in no namespace (Nodes, ClusterRoles, ...): scope: Namespaced makes both agree")
	}
}

// reachesCluster reports whether a type is any kind, or a well-known cluster-scoped kind.
func reachesCluster(gvk schema.GroupVersionKind) bool {
	switch gvk.Kind {
	case "*", "APIService", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "IngressClass",
		"MutatingWebhookConfiguration", "Node", "PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass",
		"ValidatingWebhookConfiguration":
		return true
	}
	return false
}

// lintSet warns of mutators whose change another one always undoes: of two that assign the same place, or one
// that contains it, the later wins silently.
func lintSet(mutators []*mutator) {
	for i, first := range mutators {
		if j := slices.IndexFunc(mutators[i+1:], first.shadowedBy); j >= 0 {
			second := mutators[i+1+j]
			first.location.Lint("%s %s, which runs later, overwrites it on every object that both match", second.kind, second.name)
		}
	}
}

// shadowedBy reports whether a later mutator always undoes m's change on the types that both name, if there
// are any.
func (m *mutator) shadowedBy(later *mutator) bool {
	if m.kind != kindAssign || later.kind != kindAssign || later.written.tests ||
		!m.path.hasPrefix(later.path) ||
		later.written.match != "null" && later.written.match != m.written.match {
		return false
	}
	mine, theirs := m.action.(*assign), later.action.(*assign)
	if len(m.path) == len(later.path) && diff.Equal(mine.Value, theirs.Value, diff.Type{}) {
		return false
	}
	return slices.ContainsFunc(later.claim().Types, sets.New(m.claim().Types...).Has)
}
