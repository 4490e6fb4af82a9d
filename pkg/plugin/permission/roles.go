package permission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Role is a ClusterRole, or a Role if it has a namespace.
type Role struct {
	Name, Namespace string
	Rules           []Rule
	Subjects        []rbacv1.Subject // of its binding; without subjects it has no binding
}

// Rule is a rule of a Role, with its reasons.
type Rule struct {
	rbacv1.PolicyRule
	Why []string
}

// Roles returns the roles for needs: one ClusterRole, or for a run in namespaces, a Role for each of them
// and a ClusterRole for cluster-scoped objects. All have the same subjects.
func Roles(name string, needs []Need, namespaces []string, subjects []rbacv1.Subject) []Role {
	if len(namespaces) == 0 {
		needs = slices.Clone(needs)
		for i := range needs {
			needs[i].Namespace = ""
		}
	}
	out := inNamespaces(needs)
	for i := range out {
		out[i].Name, out[i].Subjects = name, subjects
	}
	return out
}

// inNamespaces returns a role for each namespace of needs, and for none.
func inNamespaces(needs []Need) []Role {
	byNamespace := map[string][]Need{}
	for _, n := range needs {
		byNamespace[n.Namespace] = append(byNamespace[n.Namespace], n)
	}
	var out []Role
	for _, ns := range slices.Sorted(maps.Keys(byNamespace)) {
		out = append(out, Role{Namespace: ns, Rules: rules(byNamespace[ns])})
	}
	return out
}

// rules returns one rule for all verbs on a resource. Names are only kept if no need has the verb on all
// objects.
func rules(needs []Need) []Rule {
	whole := map[string]bool{}
	for _, n := range needs {
		if n.Name == "" {
			whole[n.Verb+" "+n.Group+"/"+n.Resource] = true
		}
	}
	found := map[Need]*Rule{} // by resource and name
	for _, n := range needs {
		at := Need{Group: n.Group, Resource: n.Resource, Name: n.Name, Path: n.Path}
		if whole[n.Verb+" "+n.Group+"/"+n.Resource] {
			at.Name = ""
		}
		r := found[at]
		if r == nil {
			r = &Rule{PolicyRule: at.rule()}
			found[at] = r
		}
		if !slices.Contains(r.Verbs, n.Verb) {
			r.Verbs = append(r.Verbs, n.Verb)
		}
		if !slices.Contains(r.Why, n.Why) {
			r.Why = append(r.Why, n.Why)
		}
	}
	var out []Rule
	for _, at := range slices.SortedFunc(maps.Keys(found), func(a, b Need) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name))
	}) {
		r := *found[at]
		slices.Sort(r.Verbs)
		slices.Sort(r.Why)
		out = append(out, r)
	}
	return joinRules(out)
}

// rule returns a rule for the need, without verbs.
func (n Need) rule() rbacv1.PolicyRule {
	if n.Path != "" {
		return rbacv1.PolicyRule{NonResourceURLs: []string{n.Path}}
	}
	r := rbacv1.PolicyRule{APIGroups: []string{n.Group}, Resources: []string{n.Resource}}
	if n.Name != "" {
		r.ResourceNames = []string{n.Name}
	}
	return r
}

// joinRules joins rules that differ only in the resource.
func joinRules(list []Rule) []Rule {
	var out []Rule
	known := map[string]int{}
	for _, r := range list {
		if len(r.NonResourceURLs)+len(r.ResourceNames) > 0 {
			out = append(out, r)
			continue
		}
		alike := fmt.Sprintf("%q %q %q", r.APIGroups, r.Verbs, r.Why)
		i, found := known[alike]
		if !found {
			known[alike] = len(out)
			out = append(out, r)
			continue
		}
		out[i].Resources = append(out[i].Resources, r.Resources...)
	}
	return out
}

func (r Role) kind() string {
	if r.Namespace == "" {
		return "ClusterRole"
	}
	return "Role"
}

// Objects returns the role and its binding as manifests.
func (r Role) Objects() []any {
	type manifest struct { // for all four kinds
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Rules             []rbacv1.PolicyRule `json:"rules,omitempty"`
		RoleRef           *rbacv1.RoleRef     `json:"roleRef,omitempty"`
		Subjects          []rbacv1.Subject    `json:"subjects,omitempty"`
	}
	meta := metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace}
	role := manifest{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: r.kind()},
		ObjectMeta: meta,
	}
	for _, rule := range r.Rules {
		role.Rules = append(role.Rules, rule.PolicyRule)
	}
	if len(r.Subjects) == 0 {
		return []any{role}
	}
	binding := manifest{TypeMeta: role.TypeMeta, ObjectMeta: meta, Subjects: r.Subjects}
	binding.Kind += "Binding"
	binding.RoleRef = &rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: r.kind(), Name: r.Name}
	return []any{role, binding}
}
