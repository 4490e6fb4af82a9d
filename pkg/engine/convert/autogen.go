package convert

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

// podControllers is the number of Pod controllers that Kyverno derives policies for by default.
const podControllers = 6

// withAutogen returns policies whose rules for Pod controllers are left to Kyverno's autogen. Rules for
// ReplicationControllers, which it does not support, are kept. It returns nil if autogen would change the
// meaning of a policy.
func (c *Conversion) withAutogen() []*policy {
	if c.options.To != MutatingPolicy {
		return nil
	}
	var rules []*rule
	for _, r := range c.rules {
		if r.derived {
			r = r.notByAutogen()
		} else {
			r = r.forAutogen()
		}
		if r != nil {
			rules = append(rules, r)
		}
	}
	out := c.policies(rules, true)
	groups := grouped(rules)
	if len(out) != len(groups) {
		return nil
	}
	derived := false
	for i, g := range groups {
		switch controllers, ok := c.controllers(g); {
		case g[0].derived:
			out[i].comment = []string{"For ReplicationControllers, which autogen leaves out. Where there are none, this policy is not needed."}
		case !ok || len(controllers) > 0 && slices.ContainsFunc(out[i].mutations,
			func(m mutation) bool { return expr.Fields(m.cel, "Object") == nil }):
			return nil
		case len(controllers) > 0:
			derived, out[i].autogen = true, true
			for j := range out[i].mutations {
				out[i].mutations[j].inside = len(out[i].mutations[j].when) > 0
			}
			if len(controllers) != podControllers {
				out[i].controllers = controllers
			}
		}
	}
	if !derived {
		return nil
	}
	return out
}

// notByAutogen is a derived rule for the kinds without autogen; nil if there are none.
func (r *rule) notByAutogen() *rule {
	out := *r
	out.rules = nil
	for _, rule := range r.rules {
		rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(name string) bool {
			_, known := mutatingpolicy.Autogen(name, "")
			return known
		})
		if len(rule.Resources) > 0 {
			out.rules = append(out.rules, rule)
		}
	}
	if len(out.rules) == 0 {
		return nil
	}
	return &out
}

// controllers returns the resources that rules are derived for. It reports false if Kyverno would derive
// other rules from the new policies than from the old one.
func (c *Conversion) controllers(g []*rule) ([]string, bool) {
	var out []string
	for i, r := range g {
		var of []string
		for _, d := range c.rules {
			if !d.derived || d.index != r.index {
				continue
			}
			for _, rule := range d.rules {
				for _, name := range rule.Resources {
					_, known := mutatingpolicy.Autogen(name, "")
					if known && !r.derives(d.forAutogen(), name) {
						return nil, false
					}
					if known {
						of = append(of, name)
					}
				}
			}
		}
		slices.Sort(of)
		if i > 0 && !slices.Equal(of, out) {
			return nil, false
		}
		out = of
	}
	return out, true
}

// derives reports whether autogen derives the controller's rule from the rule for Pods.
func (r *rule) derives(d *rule, resource string) bool {
	same := func(pod, controller expr.Expr) bool {
		derived, _ := mutatingpolicy.Autogen(resource, pod.String())
		return derived == controller.String()
	}
	return len(r.rules) == 1 && slices.Equal(r.rules[0].Resources, []string{"pods"}) &&
		slices.Equal(r.rules[0].Operations, d.rules[0].Operations) &&
		r.existing == nil && slices.EqualFunc(r.variables, d.variables, named.same) &&
		slices.EqualFunc(r.conditions, d.conditions, same) && slices.EqualFunc(r.guards, d.guards, same) &&
		slices.EqualFunc(r.forms[0], d.forms[0],
			func(a, b mutation) bool { return a.apply && b.apply && same(a.cel, b.cel) })
}

// forAutogen rewrites conditions on labels and annotations so that autogen moves them into the template. Its
// metadata always exists in admitted workloads.
func (r *rule) forAutogen() *rule {
	out := *r
	move := func(all []expr.Expr) []expr.Expr {
		moved := make([]expr.Expr, len(all))
		for i, e := range all {
			moved[i] = expr.PlainMetadata(e)
		}
		return moved
	}
	out.conditions, out.guards = move(r.conditions), move(r.guards)
	return &out
}
