package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

type policy struct {
	admission           bool // a MutatingAdmissionPolicy, with its binding
	name, namespace     string
	labels, annotations map[string]string
	comment             []string
	rules               []resourceRule
	namespaces          *metav1.LabelSelector
	conditions          []named
	variables           []named
	mutations           []mutation
	failurePolicy       string
	timeout             any // of the webhook, in seconds; nil: default
	existing            *existing
	// autogen has Kyverno derive policies for these Pod controllers; for all supported ones if empty.
	autogen     bool
	controllers []string
	param       types.NamespacedName // the ConfigMap parameter of a MutatingAdmissionPolicy
}

// key is namespace/name.
func (p *policy) key() string { return p.namespace + "/" + p.name }

type named struct {
	name string
	cel  expr.Expr
}

func (n named) same(other named) bool { return n.name == other.name && expr.Same(n.cel, other.cel) }

// addNamed adds expressions that are not present yet.
func addNamed(all []named, more ...named) []named {
	for _, n := range more {
		if !slices.ContainsFunc(all, n.same) {
			all = append(all, n)
		}
	}
	return all
}

type mutation struct {
	comment string
	note    string // how it differs from the rule
	apply   bool   // an ApplyConfiguration; false: a JSONPatch
	cel     expr.Expr
	when    []expr.Expr
	// the condition is within the fields of an ApplyConfiguration, which autogen moves into a template
	inside bool
}

// existing makes a policy mutate existing objects instead of its trigger.
type existing struct {
	self       bool      // each object is its own target
	expression expr.Expr // selects the targets; nil: rules
	rules      []resourceRule
	conditions []expr.Expr
}

// expression is the mutation's expression with its condition.
func (m *mutation) expression() expr.Expr {
	when := expr.And(m.when...)
	if !m.inside {
		return expr.Cond(when, m.cel, m.nothing())
	}
	fields := expr.Fields(m.cel, "Object")
	for i, f := range fields {
		if fields[i].Value = only(when, f.Value); f.Optional {
			fields[i].Value = expr.Cond(when, f.Value, expr.Call("optional.none"))
		}
		fields[i].Optional = true
	}
	return expr.Object("Object", fields...)
}

// nothing is the expression of an empty mutation.
func (m *mutation) nothing() expr.Expr {
	if m.apply {
		return expr.Object("Object")
	}
	return expr.List()
}

// String prints the policy as a manifest.
func (p *policy) String() string {
	w := &writer{}
	for _, line := range p.comment {
		w.comment(0, line)
	}
	p.head(w)
	w.line(0, "spec:")
	if p.failurePolicy != "" {
		w.line(1, "failurePolicy: "+scalar(p.failurePolicy))
	}
	switch {
	case p.admission: // it has no webhook
		w.line(1, "reinvocationPolicy: Never")
	case p.timeout != nil:
		w.line(1, "webhookConfiguration:", fmt.Sprint("  timeoutSeconds: ", p.timeout))
	}
	if p.param.Name != "" {
		w.line(1, "paramKind:", "  apiVersion: v1", "  kind: ConfigMap")
	}
	p.evaluation(w)
	w.line(1, "matchConstraints:")
	w.resourceRules(2, p.rules)
	w.value(2, "namespaceSelector", p.namespaces)
	w.expressions(1, "matchConditions", p.conditions)
	p.targets(w)
	w.expressions(1, "variables", p.variables)
	w.line(1, "mutations:")
	for i := range p.mutations {
		w.mutation(&p.mutations[i])
	}
	if p.admission {
		p.binding(w)
	}
	return w.b.String()
}

func (p *policy) head(w *writer) {
	switch {
	case p.admission:
		w.line(0, "apiVersion: admissionregistration.k8s.io/v1", "kind: MutatingAdmissionPolicy")
	case p.namespace != "":
		w.line(0, "apiVersion: policies.kyverno.io/v1", "kind: NamespacedMutatingPolicy")
	default:
		w.line(0, "apiVersion: policies.kyverno.io/v1", "kind: MutatingPolicy")
	}
	w.line(0, "metadata:", "  name: "+scalar(p.name))
	if p.namespace != "" {
		w.line(1, "namespace: "+scalar(p.namespace))
	}
	w.value(1, "labels", p.labels)
	w.value(1, "annotations", p.annotations)
}

func (p *policy) evaluation(w *writer) {
	if p.admission {
		return
	}
	// and admission, which triggers it; a policy with targets does not change the admitted object
	if p.existing != nil {
		w.line(1, "evaluation:", "  mutateExisting:", "    enabled: true")
	}
	pods := slices.ContainsFunc(p.rules, func(r resourceRule) bool {
		return slices.Contains(r.Resources, "pods") || slices.Contains(r.Resources, "*")
	})
	if pods && !p.autogen || len(p.controllers) > 0 {
		w.line(1, "autogen:", "  podControllers:", "    controllers: "+flow(p.controllers))
	}
}

func (p *policy) targets(w *writer) {
	x := p.existing
	if x == nil || x.self {
		return
	}
	w.line(1, "targetMatchConstraints:")
	if x.expression != nil {
		w.expression(2, "expression", x.expression)
	} else {
		w.resourceRules(2, x.rules)
	}
	w.expressions(1, "targetMatchConditions", nameConditions(x.conditions))
}

func (p *policy) binding(w *writer) {
	w.line(0, "---", "apiVersion: admissionregistration.k8s.io/v1", "kind: MutatingAdmissionPolicyBinding",
		"metadata:", "  name: "+scalar(p.name), "spec:", "  policyName: "+scalar(p.name))
	if p.param.Name != "" {
		w.line(1, "paramRef:", "  name: "+scalar(p.param.Name), "  namespace: "+scalar(p.param.Namespace),
			"  parameterNotFoundAction: Allow")
	}
}

// nameConditions names each condition after its contents.
func nameConditions(conditions []expr.Expr) []named {
	var out []named
	taken := map[string]bool{}
	for _, c := range without(conditions, []expr.Expr{expr.Bool(true)}) {
		name := slug(c)
		for i, wanted := 2, name; taken[name]; i++ {
			name = fmt.Sprintf("%s-%d", wanted, i)
		}
		taken[name] = true
		out = append(out, named{name, c})
	}
	return out
}

// without removes expressions from others.
func without(all, others []expr.Expr) []expr.Expr {
	return slices.DeleteFunc(slices.Clone(all), func(e expr.Expr) bool { return expr.Contains(others, e) })
}

var words = regexp.MustCompile(`[A-Za-z0-9]+`)

// slug derives a name from the significant words of a condition.
func slug(condition expr.Expr) string {
	noise := []string{
		"object", "oldobject", "metadata", "generatename", "orvalue", "hasvalue", "request",
		"exists", "has", "string", "matches", "startswith", "endswith",
		"contains", "s", "g", "c", "v", "e", "k", "i", "all", "size", "spec", "true", "dyn",
		"filter", "map", "in", "value", "optional", "none", "of", "variables",
	}
	var out []string
	c := condition.String()
	several := len(expr.Operands(condition, "&&"))+len(expr.Operands(condition, "||")) > 2
	if strings.HasPrefix(c, "!") || !several && expr.IsNotEqual(condition) {
		out = append(out, "not")
	}
	if strings.HasPrefix(c, "has(") && !several {
		out = append(out, "has")
	}
	for _, word := range words.FindAllString(c, -1) {
		word = strings.ToLower(word)
		if !slices.Contains(noise, word) && !slices.Contains(out, word) && len(out) < 5 {
			out = append(out, word)
		}
	}
	name := strings.Join(out, "-")
	for ; len(name) > 50 && len(out) > 1; name = strings.Join(out, "-") { // cut after a whole word
		out = out[:len(out)-1]
	}
	name = strings.TrimRight(name[:min(len(name), 50)], "-")
	if name == "" || name == "not" || name == "has" {
		return "condition"
	}
	return name
}
