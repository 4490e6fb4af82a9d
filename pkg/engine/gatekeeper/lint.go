package gatekeeper

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// lintApplyTo warns of entries that can name no type.
func lintApplyTo(f *policydecode.Fields, a match.ApplyTo) {
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

// groupOf is the group of kinds that people take for core kinds.
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

// lint warns of what one mutator probably does not mean.
func (m *mutator) lint() {
	c := &m.criteria
	filters := len(c.Namespaces) > 0 || c.NamespaceLabels != nil
	if filters && c.Scope != match.Namespaced && slices.ContainsFunc(m.types(), reachesCluster) {
		m.location.Lint("namespaces and namespaceSelector are taken for \"only there\" here, but Gatekeeper's webhook " +
			"also mutates objects that are in no namespace (Nodes, ClusterRoles, ...): scope: Namespaced makes both agree")
	}
}

// reachesCluster reports whether a type is any kind, or one of the well-known kinds
// that are in no namespace.
func reachesCluster(gvk schema.GroupVersionKind) bool {
	switch gvk.Kind {
	case "*", "APIService", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "IngressClass",
		"MutatingWebhookConfiguration", "Node", "PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass",
		"ValidatingWebhookConfiguration":
		return true
	}
	return false
}

// mostCompared bounds how many of the later mutators of one place one is compared with.
const mostCompared = 5

// lintSet warns of mutators whose work another one always undoes: of two that
// assign the same place, or one that holds it, the later wins without a word.
func lintSet(mutators []*mutator) {
	places := map[string][]int{} // the mutators that assign a place, in order
	for i, m := range mutators {
		if m.kind == kindAssign && !m.written.tests {
			place := m.path.String()
			places[place] = append(places[place], i)
		}
	}
	for i, first := range mutators {
		if first.kind != kindAssign {
			continue
		}
		if j := first.shadow(i, mutators, places); j > i {
			second := mutators[j]
			first.location.Lint("%s %s, which runs later, overwrites it on every object that both match", second.kind, second.name)
		}
	}
}

// shadow returns the first mutator after the i-th, which m is, that always undoes what m
// does; 0 for none.
func (m *mutator) shadow(i int, mutators []*mutator, places map[string][]int) int {
	var types map[binding]bool
	found := 0
	for depth := range m.path {
		at := places[m.path[:depth+1].String()]
		next, _ := slices.BinarySearch(at, i+1)
		for _, j := range at[next:min(len(at), next+mostCompared)] {
			if !m.shadowedBy(mutators[j]) || found > 0 && found < j {
				continue
			}
			if types == nil {
				types = m.typeSet()
			}
			if slices.ContainsFunc(mutators[j].claim().Types, func(b binding) bool { return types[b] }) {
				found = j
			}
		}
	}
	return found
}

func (m *mutator) typeSet() map[binding]bool {
	types := map[binding]bool{}
	for _, b := range m.claim().Types {
		types[b] = true
	}
	return types
}

// shadowedBy reports whether a later mutator always undoes what m does to objects of the
// types that both name.
func (m *mutator) shadowedBy(later *mutator) bool {
	if !m.path.HasPrefix(later.path) {
		return false
	}
	mine, theirs := m.action.(*assign), later.action.(*assign)
	if len(m.path) == len(later.path) && diff.Equal(mine.Value, theirs.Value, diff.Type{}) {
		return false
	}
	return later.written.match == nil || diff.Equal(m.written.match, later.written.match, diff.Type{})
}
