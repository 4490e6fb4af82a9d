package convert

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// exceptions adds the PolicyExceptions of a rule as conditions: they do not name the new policies.
func (c *converter) exceptions(r *rule, m *matcher) {
	for _, d := range c.Documents {
		gvk := d.Key.GroupVersionKind()
		if gvk.Kind != "PolicyException" || gvk.Group != "kyverno.io" {
			continue
		}
		report := &policydecode.Report{}
		spec := policydecode.Node{Report: report, Value: d.Object().Object}.Fields().At("spec").Fields()
		if !c.excepts(spec, r.name) {
			continue
		}
		what := "PolicyException " + strings.TrimPrefix(d.Key.Namespace+"/"+d.Key.Name, "/")
		if spec.Has("conditions") {
			panic(refuseField("", "write them as preconditions of the rule", "%s has conditions", what))
		}
		filters, all := match.Decode(spec.At("match")).Filters()
		var conditions []expr.Expr
		for _, f := range filters {
			conditions = append(conditions,
				read(what, func() expr.Expr { return m.filter(f, "match."+f.Place, true) }))
		}
		if all && len(conditions) > 0 {
			conditions = []expr.Expr{expr.And(conditions...)}
		}
		for _, each := range conditions {
			r.guards = append(r.guards, expr.Not(each))
		}
		r.notes = append(r.notes, what+" has become a condition: later changes of it have no effect on the new policy")
	}
}

func (c *converter) excepts(spec *policydecode.Fields, rule string) bool {
	name := strings.TrimPrefix(c.document.Key.Namespace+"/"+c.document.Key.Name, "/")
	for _, n := range spec.At("exceptions").List() {
		f := n.Fields()
		if selector.MatchWildcard(f.At("policyName").Text(), name) &&
			selector.AnyOf(f.At("ruleNames").Texts(), rule) {
			return true
		}
	}
	return false
}
