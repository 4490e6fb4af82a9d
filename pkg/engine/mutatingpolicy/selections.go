package mutatingpolicy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Selections covers the objects that the constraints select in a namespace, or
// in all where none is given. They are best read in the version that a rule is
// for; one that is not served selects nothing in the end.
func (c *Constraints) Selections(namespace string) []engine.Selection {
	everything := &Constraints{objects: c.objects, rules: []resourceRule{{
		groups: []string{"*"}, versions: []string{"*"}, resources: []resource{{name: "*"}},
	}}}
	if len(c.rules) == 0 {
		return everything.Selections(namespace)
	}
	var out []engine.Selection
	for _, t := range c.Targets() {
		version := t.Resource.Version
		if version == "*" {
			version = ""
		}
		for _, name := range t.Names {
			out = append(out, engine.Selection{
				Group: t.Resource.Group, Kind: "*", Resource: t.Resource.Resource, ReadAs: version,
				Subresource: t.Subresource, Namespace: namespace, Name: name, Labels: labelsOf(c.objects),
			})
		}
	}
	return out
}

func labelsOf(l *selector.Labels) *metav1.LabelSelector {
	if l == nil {
		return nil
	}
	return l.Exact()
}

// Operations are those that the constraints are limited to; none where a rule
// leaves them open.
func (c *Constraints) Operations() []engine.Operation {
	var out []engine.Operation
	for i := range c.rules {
		if len(c.rules[i].operations) == 0 || slices.Contains(c.rules[i].operations, "*") {
			return nil
		}
		for _, o := range c.rules[i].operations {
			if !slices.Contains(out, engine.Operation(o)) {
				out = append(out, engine.Operation(o))
			}
		}
	}
	return out
}
