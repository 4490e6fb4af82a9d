package admissionpolicy

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Selections cover the objects that the constraints may select. A rule that names
// a version asks for the objects in that version; those that are in another one
// are covered too where equivalent versions count.
func (c *Constraints) Selections() []engine.Selection {
	rules := c.Rules
	if len(rules) == 0 {
		rules = []Rule{{Groups: []string{"*"}, Versions: []string{"*"}, Resources: []string{"*"}}}
	}
	var out []engine.Selection
	for i := range rules {
		out = append(out, c.ofRule(&rules[i])...)
	}
	return out
}

func (c *Constraints) ofRule(r *Rule) []engine.Selection {
	names := r.Names
	if len(names) == 0 {
		names = []string{""}
	}
	var out []engine.Selection
	for _, s := range c.ofTypes(r) {
		if c.Objects != nil {
			s.Labels = c.Objects.Exact()
		}
		for _, s.Name = range names {
			out = append(out, s)
		}
	}
	return out
}

// ofTypes selects the resources of a rule; its subresources are nobody's objects.
func (c *Constraints) ofTypes(r *Rule) []engine.Selection {
	var out []engine.Selection
	for _, group := range r.Groups {
		for _, text := range r.Resources {
			resource, subresource, _ := strings.Cut(text, "/")
			if subresource != "" && subresource != "*" {
				continue
			}
			s := engine.Selection{Group: group, Kind: "*", Resource: resource}
			switch {
			case slices.Contains(r.Versions, "*"):
				out = append(out, s)
			case c.Equivalent && len(r.Versions) > 0:
				s.ReadAs = r.Versions[0]
				out = append(out, s)
			default:
				for _, s.Version = range r.Versions {
					out = append(out, s)
				}
			}
		}
	}
	return out
}
