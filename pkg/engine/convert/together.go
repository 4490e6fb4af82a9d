package convert

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// Of a policy for Pods and their controllers, these variables are the Pod, or its template, and the JSON
// pointer of that.
const (
	podVariable     = "pod"
	podPathVariable = "podPath"
)

// templates are where controllers have the template of a Pod, by what is special in their names.
const (
	template    = "spec.template"
	jobTemplate = "spec.jobTemplate.spec.template"
)

// together are the rules, where those that are derived from one for Pods are one with it: a JSON patch at the
// place where the kind has the Pod. It returns nil where no rule can be written so.
func (c *Conversion) together() []*rule {
	admission := c.options.To == MutatingAdmissionPolicy
	var out []*rule
	joined := map[int]bool{}
	for _, g := range grouped(c.rules) {
		// the variables of a MutatingPolicy do not see what its mutations do
		if g[0].derived || g[0].existing != nil || len(g) > 1 && (c.one || !admission) {
			continue
		}
		var all []*rule
		for _, r := range g {
			if with := r.withControllers(c.rules, admission); with != nil {
				all = append(all, with)
			}
		}
		if len(all) < len(g) {
			continue
		}
		out = append(out, all...)
		for _, r := range g {
			joined[r.index] = true
		}
	}
	if len(out) == 0 {
		return nil
	}
	for _, r := range c.rules {
		if !joined[r.index] {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *rule) int { return a.index - b.index })
	return out
}

// withControllers is a rule for Pods and for the controllers that others are derived for; nil where these
// differ in more than where the Pod is.
func (r *rule) withControllers(all []*rule, admission bool) *rule {
	out := *r
	s := selection{rules: slices.Clone(r.rules)}
	var joined *rule
	for _, d := range all {
		if !d.derived || d.index != r.index {
			continue
		}
		// A kind of the same name in another group need not have what the variables read: they would fail,
		// and the request be denied.
		if alwaysThere(r.kindsOf()) == nil || alwaysThere(d.kindsOf()) == nil {
			return nil
		}
		podless := d.inPod()
		if podless == nil || joined != nil && !podless.says(joined) ||
			!slices.Equal(d.rules[0].Operations, r.rules[0].Operations) {
			return nil
		}
		joined = podless
		for _, rule := range d.rules {
			s.add(rule)
		}
	}
	if joined == nil || slices.ContainsFunc(r.variables,
		func(v named) bool { return v.name == podVariable || v.name == podPathVariable }) {
		return nil
	}
	out.rules = s.rules
	conditionsOnPod := slices.ContainsFunc(slices.Concat(joined.conditions, joined.guards), mentionsVariables)
	// as conditions of a MutatingAdmissionPolicy see no variables
	out.inside = out.inside || admission && conditionsOnPod
	out.conditions, out.guards, out.forms = joined.conditions, joined.guards, joined.forms
	out.variables = slices.Concat(podVariables(s.rules), joined.variables)
	return &out
}

// inPod is a derived rule in the terms of the Pod that its kinds have; nil where it has no JSON patch.
func (r *rule) inPod() *rule {
	form := r.form(false)
	if r.never || len(form) != 1 || form[0].apply || len(r.kindsOf()) == 0 {
		return nil
	}
	at := template
	if r.kindsOf()[0].Kind == "CronJob" {
		at = jobTemplate
	}
	rewrite := func(e expr.Expr) expr.Expr {
		return expr.Rewrite(e, func(e expr.Expr) expr.Expr { return ofPod(e, at) })
	}
	rewritten := func(all []expr.Expr) []expr.Expr {
		out := make([]expr.Expr, len(all))
		for i := range all {
			out[i] = rewrite(all[i])
		}
		return out
	}
	out := &rule{
		selection: selection{namespaces: r.namespaces, conditions: rewritten(r.conditions)},
		guards:    rewritten(r.guards),
	}
	for _, v := range r.variables {
		out.variables = append(out.variables, named{v.name, rewrite(v.cel)})
	}
	out.forms = [][]mutation{{{cel: rewrite(form[0].cel)}}}
	return out
}

// ofPod is a part of an expression with the Pod at a place as the variable.
func ofPod(e expr.Expr, at string) expr.Expr {
	if expr.Same(e, expr.Path("object."+at)) {
		return expr.Variable(podVariable)
	}
	fields := expr.Fields(e, "JSONPatch")
	for i, f := range fields {
		terms := expr.Terms(f.Value)
		pointer, _ := expr.StringOf(terms[0])
		if rest, below := strings.CutPrefix(pointer, pointerOf(at)); below && rest != "" &&
			(f.Name == "path" || f.Name == "from") {
			fields[i].Value = expr.Sum(append([]expr.Expr{expr.Variable(podPathVariable), expr.String(rest)},
				terms[1:]...)...)
		}
	}
	if fields != nil {
		return expr.Object("JSONPatch", fields...)
	}
	return e
}

// pointerOf is the JSON pointer of fields.
func pointerOf(path string) string { return "/" + strings.ReplaceAll(path, ".", "/") }

// says reports whether two rules ask and do the same.
func (r *rule) says(other *rule) bool {
	return slices.EqualFunc(r.conditions, other.conditions, expr.Same) &&
		slices.EqualFunc(r.guards, other.guards, expr.Same) &&
		slices.EqualFunc(r.variables, other.variables, named.same) &&
		expr.Same(r.forms[0][0].cel, other.forms[0][0].cel)
}

// podVariables are the variables of a policy for kinds that have a Pod.
func podVariables(rules []resourceRule) []named {
	has := func(cronJobs bool) bool {
		return slices.ContainsFunc(rules, func(r resourceRule) bool {
			return slices.ContainsFunc(r.Resources,
				func(name string) bool { return name != "pods" && (name == "cronjobs") == cronJobs })
		})
	}
	is := func(kind string) expr.Expr { return expr.Equal(expr.Path("object.kind"), expr.String(kind)) }
	pod, path := expr.Path("object."+template), expr.String(pointerOf(template))
	podOfJob, pathOfJob := expr.Path("object."+jobTemplate), expr.String(pointerOf(jobTemplate))
	switch {
	case !has(false):
		pod, path = podOfJob, pathOfJob
	case has(true):
		pod, path = expr.Cond(is("CronJob"), podOfJob, pod), expr.Cond(is("CronJob"), pathOfJob, path)
	}
	return []named{{podVariable, expr.Cond(is("Pod"), expr.Name("object"), pod)}, {podPathVariable, expr.Cond(is("Pod"), expr.String(""), path)}}
}
