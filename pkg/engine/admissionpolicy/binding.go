package admissionpolicy

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// binding is a MutatingAdmissionPolicyBinding.
type binding struct {
	name, policy string
	root         policydecode.Node
	broken       bool
	resources    *match.Constraints // nil for all that the policy matches
	params       *paramRef          // nil for none
}

// paramRef names the parameters of a binding, by name or by selector.
type paramRef struct {
	name, namespace string
	selector        *metav1.LabelSelector
	denies          bool // parameterNotFoundAction Deny
}

// decodeBinding reads a binding. What is wrong with it goes to the report.
func decodeBinding(r *policydecode.Report, d engine.Document) *binding {
	b := &binding{name: d.Object.GetName(), root: policydecode.Node{Report: r, Value: d.Object.Object}}
	root := b.root.Fields()
	checkVersion(root.At("apiVersion"), d)
	spec := root.At("spec").Fields()
	if b.policy = spec.At("policyName").Text(); b.policy == "" {
		spec.At("policyName").Fail("is missing")
	}
	if spec.Has("matchResources") {
		b.resources = decodeConstraints(spec.At("matchResources"))
	}
	if spec.Has("paramRef") {
		b.params = decodeParamRef(spec.At("paramRef"))
	}
	spec.Done()
	b.broken = len(r.Errs) > 0
	b.root.Value = nil // the document is not needed any more
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
	ref     engine.RuleRef
}

// bind joins policies with their bindings, sorted by name. Bindings of policies that take
// no part are dropped.
func bind(policies []*policy, bindings map[string][]*binding) []*unit {
	slices.SortStableFunc(policies, func(a, b *policy) int { return cmp.Compare(a.ref.Policy, b.ref.Policy) })
	var out []*unit
	for _, p := range policies {
		own := bindings[p.ref.Policy]
		slices.SortStableFunc(own, func(a, b *binding) int { return cmp.Compare(a.name, b.name) })
		if len(own) == 0 && !p.unbound() {
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
			u := &unit{policy: p, binding: b, ref: p.ref}
			if b != nil {
				u.ref.Via = b.name
			}
			out = append(out, u)
		}
	}
	return out
}

// unbound warns about a policy without a binding, and reports whether it is evaluated all
// the same.
func (p *policy) unbound() bool {
	if p.broken {
		return false
	}
	if p.ref.Origin == fromCluster {
		p.root.Lint("nothing binds it, so that it does nothing in the cluster: a %s puts it to work", kindBinding)
		return false
	}
	p.root.Lint("no %s comes with it: it is evaluated as if it were bound to everything that it matches", kindBinding)
	return true
}

func (p *policy) lintParams(b *binding) {
	switch {
	case p.params == nil && b != nil && b.params != nil:
		b.root.Lint("the policy has no paramKind, so that paramRef has no effect")
	case p.params != nil && (b == nil || b.params == nil):
		p.root.Lint("it has a paramKind, and no binding names a parameter: params is null")
	}
}
