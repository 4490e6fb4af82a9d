package admissionpolicy

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// binding is a MutatingAdmissionPolicyBinding.
type binding struct {
	name, policy string
	report       *policydecode.Report
	broken       bool
	resources    *cel.Constraints // nil for all that the policy matches
	params       *paramRef        // nil for none
}

// root is the place of the document as a whole.
func (b *binding) root() policydecode.Node { return policydecode.Node{Report: b.report} }

// paramRef names the parameters of a binding, by name or by selector.
type paramRef struct {
	name, namespace string
	selector        *metav1.LabelSelector
	denies          bool // parameterNotFoundAction Deny
}

// decodeBinding reads a binding. What is wrong with it goes to the report.
func decodeBinding(r *policydecode.Report, d engine.Document) *binding {
	b := &binding{name: d.Key.Name, report: r}
	root := policydecode.Node{Report: r, Value: d.Object().Object}.Fields()
	checkVersion(root.At("apiVersion"), d)
	spec := root.At("spec").Fields()
	b.policy = spec.At("policyName").Required()
	if spec.Has("matchResources") {
		b.resources = decodeConstraints(spec.At("matchResources"))
	}
	if spec.Has("paramRef") {
		b.params = decodeParamRef(spec.At("paramRef"))
	}
	spec.Done()
	root.DoneObject()
	b.broken = len(r.Errs) > 0
	return b
}

func decodeParamRef(n policydecode.Node) *paramRef {
	f := n.Fields()
	p := &paramRef{
		name: f.At("name").Text(), namespace: f.At("namespace").Text(), selector: f.At("selector").LabelSelector(),
		denies: f.At("parameterNotFoundAction").OneOf("Allow", "Deny") == "Deny",
	}
	if !f.Has("parameterNotFoundAction") {
		f.At("parameterNotFoundAction").Lint("an API server refuses a binding without it; Allow is assumed")
	}
	f.Done()
	if (p.name == "") == (p.selector == nil) {
		n.Fail("needs either a name or a selector")
	}
	return p
}

// unit is one policy with one of its bindings.
type unit struct {
	*policy
	binding *binding // nil for a policy without one, evaluated as if it were bound
}

// rule names the policy and its binding.
func (u *unit) rule() engine.RuleRef {
	ref := u.Ref
	if ref.Via = assumed; u.binding != nil {
		ref.Via = u.binding.name
	}
	return ref
}

// assumed stands in engine.RuleRef.Via for the binding that a policy does not have.
const assumed = "assumed binding"

// bind joins policies with their bindings, sorted by name. Bindings of policies that take
// no part are dropped. Assume is that of engine.Compilation.
func bind(policies []*policy, bindings map[string][]*binding, assume bool) []unit {
	slices.SortStableFunc(policies, func(a, b *policy) int { return cmp.Compare(a.Ref.Policy, b.Ref.Policy) })
	var out []unit
	for _, p := range policies {
		own := bindings[p.Ref.Policy]
		slices.SortStableFunc(own, func(a, b *binding) int { return cmp.Compare(a.name, b.name) })
		if len(own) == 0 && !p.unbound(assume) {
			continue
		}
		if len(own) == 0 {
			own = []*binding{nil}
		}
		for _, b := range own {
			if p.broken || (b != nil && b.broken) {
				continue
			}
			p.lintParams(b)
			out = append(out, unit{policy: p, binding: b})
		}
	}
	return out
}

// unbound warns about a policy without a binding, unless the user asked for it to be evaluated, and reports whether it is.
func (p *policy) unbound(assume bool) bool {
	switch {
	case p.broken:
		return false
	case assume:
	case p.Ref.Origin == fromCluster:
		p.root().Lint("nothing binds it, so that it does nothing in the cluster: a %s puts it to work; --assume-binding evaluates it as if it were bound to everything that it matches", kindBinding)
		return false
	default:
		p.root().Lint("no %s comes with it: it is evaluated as if it were bound to everything that it matches; --assume-binding leaves this warning out", kindBinding)
	}
	return true
}

// lintParams warns of a policy and a binding that do not agree on whether there are parameters.
func (p *policy) lintParams(b *binding) {
	switch {
	case p.params == nil && b != nil && b.params != nil:
		b.root().Lint("the policy has no paramKind, so that paramRef has no effect")
	case p.asksParams && b == nil:
		p.root().Lint("params would be a %s, which the paramRef of a %s names", p.params.Kind, kindBinding)
	case p.params != nil && b != nil && b.params == nil:
		p.root().Lint("it has the paramKind %s, and its binding %s has no paramRef that names one: params is null", p.params.Kind, b.name)
	}
}
