package admissionpolicy

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// DecodeConstraints reads matchConstraints or matchResources, with the defaults that a
// server fills in. What is wrong with them goes to the report.
func DecodeConstraints(n policydecode.Node) *Constraints {
	f := n.Fields()
	c := &Constraints{
		Rules: decodeRules(f.At("resourceRules")), Excluded: decodeRules(f.At("excludeResourceRules")),
		Namespaces: decodeLabels(f.At("namespaceSelector")), Objects: decodeLabels(f.At("objectSelector")),
		Equivalent: f.At("matchPolicy").OneOf("Equivalent", "Exact") != "Exact",
	}
	f.Done()
	return c
}

func decodeLabels(n policydecode.Node) *selector.Labels {
	s := n.LabelSelector()
	if s == nil || (len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0) {
		return nil
	}
	compiled, err := selector.NewLabels(s)
	if err != nil {
		n.Fail("%w", err)
		return nil
	}
	return compiled
}

func decodeRules(n policydecode.Node) []Rule {
	var out []Rule
	for _, item := range n.List() {
		f := item.Fields()
		r := Rule{
			Groups: needed(f.At("apiGroups")), Versions: needed(f.At("apiVersions")), Resources: needed(f.At("resources")),
			Operations: needed(f.At("operations")), Names: f.At("resourceNames").Texts(),
			Scope: f.At("scope").OneOf("*", "Namespaced", "Cluster"),
		}
		for _, o := range r.Operations {
			if !slices.Contains([]string{"*", "CREATE", "UPDATE", "DELETE", "CONNECT"}, o) {
				f.At("operations").Fail("must be CREATE, UPDATE, DELETE, CONNECT or *, not %q", o)
			}
		}
		f.Done()
		out = append(out, r)
	}
	return out
}

func needed(n policydecode.Node) []string {
	texts := n.Texts()
	if len(texts) == 0 {
		n.Lint("an API server refuses a rule without it, and it selects nothing")
	}
	return texts
}
