package mutatingpolicy

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Constraints are compiled matchConstraints.
type Constraints struct {
	rules, excluded     []resourceRule
	namespaces, objects *selector.Labels // nil selects everything
}

// resourceRule is one of the resource rules.
type resourceRule struct {
	groups, versions, operations, names []string
	resources                           []resource
	scope                               string
}

type resource struct{ name, subresource string }

// DecodeConstraints reads matchConstraints. Fields that only targetMatchConstraints have are
// left to the caller, and so is the call of Done.
func DecodeConstraints(f *policydecode.Fields) *Constraints {
	c := &Constraints{namespaces: decodeLabels(f.At("namespaceSelector")), objects: decodeLabels(f.At("objectSelector"))}
	for _, n := range f.At("resourceRules").List() {
		c.rules = append(c.rules, decodeRule(n))
	}
	for _, n := range f.At("excludeResourceRules").List() {
		c.excluded = append(c.excluded, decodeRule(n))
	}
	f.At("matchPolicy").Text() // Kyverno's matcher does not look at it
	return c
}

func decodeLabels(n policydecode.Node) *selector.Labels {
	s := n.LabelSelector()
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil
	}
	l, err := selector.NewLabels(s)
	if err != nil {
		n.Fail("%w", err)
		return nil
	}
	return l
}

func decodeRule(n policydecode.Node) resourceRule {
	f := n.Fields()
	r := resourceRule{
		groups: f.At("apiGroups").Texts(), versions: f.At("apiVersions").Texts(),
		operations: f.At("operations").Texts(), names: f.At("resourceNames").Texts(), scope: f.At("scope").Text(),
	}
	for _, text := range f.At("resources").Texts() {
		name, subresource, _ := strings.Cut(text, "/")
		r.resources = append(r.resources, resource{name, subresource})
	}
	for _, key := range []string{"apiGroups", "apiVersions", "operations", "resources"} {
		if list, isList := f.At(key).Value.([]any); f.At(key).Value == nil || (isList && len(list) == 0) {
			f.At(key).Fail("is empty, so that the rule matches nothing; \"*\" stands for all")
		}
	}
	for i, operation := range r.operations {
		if !slices.Contains([]string{"CREATE", "UPDATE", "DELETE", "CONNECT", "*"}, operation) {
			f.At("operations").List()[i].Fail("must be CREATE, UPDATE, DELETE, CONNECT or *, not %q", operation)
		}
	}
	if !slices.Contains([]string{"", "*", "Cluster", "Namespaced"}, r.scope) {
		f.At("scope").Fail("must be Cluster, Namespaced or *, not %q", r.scope)
	}
	f.Done()
	return r
}

// Resources builds constraints that select resources by their names alone, in
// the namespaces that c selects and for the operations of its first rule: those
// of a policy that is derived from one for Pods.
func (c *Constraints) Resources(groups []GroupResources) *Constraints {
	out := &Constraints{namespaces: c.namespaces}
	for _, g := range groups {
		r := resourceRule{groups: []string{g.Group}, versions: []string{g.Version}, operations: c.rules[0].operations, scope: c.rules[0].scope}
		for _, name := range g.Names {
			r.resources = append(r.resources, resource{name: name})
		}
		out.rules = append(out.rules, r)
	}
	return out
}

// GroupResources are resources of one version of an API group.
type GroupResources struct {
	Group, Version string
	Names          []string
}

// OnlyPods tells whether the constraints are those of a policy that Kyverno
// derives policies for Pod controllers from: one rule for Pods, of any name, and
// neither exclusions nor a selector of labels (pkg/cel/autogen/support.go).
func (c *Constraints) OnlyPods() bool {
	if len(c.rules) != 1 || len(c.excluded) > 0 || c.objects != nil {
		return false
	}
	r := c.rules[0]
	return len(r.names) == 0 && slices.Equal(r.groups, []string{""}) && slices.Equal(r.versions, []string{"v1"}) &&
		slices.Equal(r.resources, []resource{{name: "pods"}})
}

// Empty tells whether there is no resource rule, so that everything is selected.
func (c *Constraints) Empty() bool { return len(c.rules) == 0 }

// OnlySubresources tells whether no rule is for objects themselves.
func (c *Constraints) OnlySubresources() bool {
	return len(c.rules) > 0 && !slices.ContainsFunc(c.Targets(), func(t Target) bool { return t.Subresource == "" || t.Subresource == "*" })
}
