package convert

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// Variables in policies for Pods and controllers: the Pod or its template, and its JSON pointer.
const (
	podVariable     = "pod"
	podPathVariable = "podPath"
)

// Locations of the Pod template in controllers, by distinctive parts of their names.
const (
	template    = "spec.template"
	jobTemplate = "spec.jobTemplate.spec.template"
)

// together joins each rule for Pods with the rules derived from it: one JSON patch at the Pod's location in
// each kind. It returns nil if no rules can be joined.
func (c *Conversion) together() []*rule {
	admission := c.options.To == MutatingAdmissionPolicy
	var out []*rule
	joined := map[int]bool{}
	for _, g := range grouped(c.rules) {
		// a MutatingPolicy's variables do not see the results of its mutations
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

// withControllers joins a rule for Pods with its derived rules; nil if they differ in more than the location
// of the Pod.
func (r *rule) withControllers(all []*rule, admission bool) *rule {
	out := *r
	s := selection{rules: slices.Clone(r.rules)}
	var joined *rule
	for _, d := range all {
		if !d.derived || d.index != r.index {
			continue
		}
		// A kind of the same name in another group may lack fields that the variables read: they would fail, and
		// deny the request.
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
	// a MutatingAdmissionPolicy's conditions see no variables
	out.inside = out.inside || admission && conditionsOnPod
	out.conditions, out.guards, out.forms = joined.conditions, joined.guards, joined.forms
	out.variables = slices.Concat(podVariables(s.rules), joined.variables)
	return &out
}

// inPod rewrites a derived rule in terms of its Pod template; nil without a JSON patch.
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

// ofPod replaces the Pod at a location with the variable.
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

// pointerOf is the JSON pointer of a dotted path.
func pointerOf(path string) string { return "/" + strings.ReplaceAll(path, ".", "/") }

// says reports whether two rules have the same conditions and mutations.
func (r *rule) says(other *rule) bool {
	return slices.EqualFunc(r.conditions, other.conditions, expr.Same) &&
		slices.EqualFunc(r.guards, other.guards, expr.Same) &&
		slices.EqualFunc(r.variables, other.variables, named.same) &&
		expr.Same(r.forms[0][0].cel, other.forms[0][0].cel)
}

// podVariables returns the policy variables for kinds with a Pod.
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
