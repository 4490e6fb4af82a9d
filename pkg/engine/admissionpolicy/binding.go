package admissionpolicy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

type binding struct {
	policydecode.Node // of the document
	name, policy      string
	broken            bool
	resources         *cel.Constraints // nil for everything that the policy matches
	params            *paramRef        // may be nil
}

// paramRef selects a binding's parameters, by name or by selector.
type paramRef struct {
	name, namespace string
	selector        *metav1.LabelSelector
	denies          bool // parameterNotFoundAction Deny
}

// decodeBinding reads a binding. Errors go to the report.
func decodeBinding(r *policydecode.Report, d engine.Document) *binding {
	b := &binding{Node: policydecode.Node{Report: r}, name: d.Key.Name}
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
	binding *binding // nil if the policy is evaluated as if it were bound
}

func (u *unit) rule() engine.RuleRef {
	ref := u.Ref
	if ref.Via = assumed; u.binding != nil {
		ref.Via = u.binding.name
	}
	return ref
}

// assumed is the engine.RuleRef.Via of a policy without a binding.
const assumed = "assumed binding"

// bind joins policies with their bindings, sorted by name. Bindings of unused policies are dropped. For
// assume, see engine.Compilation.
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

// unbound warns of a policy without a binding, unless the user asked to evaluate it, and reports whether to
// evaluate it.
func (p *policy) unbound(assume bool) bool {
	switch {
	case p.broken:
		return false
	case assume:
	case p.Ref.Origin == fromCluster:
		p.Lint("nothing binds it, so that it does nothing in the cluster: a %s puts it to work; --assume-binding evaluates it as if it were bound to everything that it matches", kindBinding)
		return false
	default:
		p.Lint("no %s comes with it: it is evaluated as if it were bound to everything that it matches; --assume-binding leaves this warning out", kindBinding)
	}
	return true
}

// lintParams warns of a policy and a binding that disagree about parameters.
func (p *policy) lintParams(b *binding) {
	switch {
	case p.params == nil && b != nil && b.params != nil:
		b.Lint("the policy has no paramKind, so that paramRef has no effect")
	case p.asksParams && b == nil:
		p.Lint("params would be a %s, which the paramRef of a %s names", p.params.Kind, kindBinding)
	case p.params != nil && b != nil && b.params == nil:
		p.Lint("it has the paramKind %s, and its binding %s has no paramRef that names one: params is null", p.params.Kind, b.name)
	}
}

type param struct {
	name    string // "shop/limits"
	content map[string]any
	secret  bool // is a Secret
}

// params returns the parameters of a policy: a single nil without a paramKind. If none is found and the
// binding allows that, the error is an *engine.SkippedError.
func (r *run) params(u *unit) ([]*param, error) {
	if u.binding == nil && u.asksParams {
		return nil, &engine.UnsupportedError{Err: fmt.Errorf("params would be a %s, which the paramRef of a %s names", u.params.Kind, kindBinding)}
	}
	if u.params == nil || u.binding == nil || u.binding.params == nil {
		return []*param{nil}, nil
	}
	if r.world.Reader == nil {
		return nil, &engine.UnsupportedError{Err: errors.New("parameters need a cluster, or manifests, to be read from")}
	}
	ref := u.binding.params
	namespace, err := r.paramNamespace(u)
	if err != nil {
		return nil, parameterError(err)
	}
	found, err := r.readParams(*u.params, namespace, ref)
	if err != nil {
		return nil, parameterError(err)
	}
	if len(found) > 0 {
		return found, nil
	}
	wants := engine.Selection{
		Group: u.params.Group, Kind: u.params.Kind, Namespace: namespace, Name: ref.name, Labels: ref.selector,
	}
	if ref.denies {
		return nil, parameterError(fmt.Errorf("there is no %s, and parameterNotFoundAction is Deny", wants))
	}
	return nil, parameterError(&engine.SkippedError{Reason: fmt.Sprintf("there is no %s, and parameterNotFoundAction is Allow", wants)})
}

// paramNamespace returns a server's namespace for parameters: none for cluster-scoped kinds, else the
// binding's or the object's.
func (r *run) paramNamespace(u *unit) (string, error) {
	if r.world.Mapper == nil {
		return "", fmt.Errorf("paramKind %s is not known", u.params.Kind)
	}
	mapping, err := r.world.Mapper.RESTMapping(u.params.GroupKind(), u.params.Version)
	if err != nil {
		return "", fmt.Errorf("paramKind %s is not known: %w", u.params.Kind, err)
	}
	own := u.binding.params.namespace
	switch objects := r.candidate.Target.Key.Namespace; {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace && own != "":
		return "", errors.New("paramRef.namespace must not be given for a kind without namespaces")
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return "", nil
	case own != "":
		return own, nil
	case objects != "":
		return objects, nil
	}
	return "", errors.New("an object without a namespace needs a paramRef.namespace")
}

func parameterError(err error) error { return fmt.Errorf("parameters of the binding: %w", err) }

// readParams reads a binding's parameters, sorted by name.
func (r *run) readParams(
	kind schema.GroupVersionKind, namespace string, ref *paramRef,
) (out []*param, err error) {
	if ref.name != "" {
		u, err := r.world.Get(r.ctx,
			engine.ObjectKey{GroupKind: kind.GroupKind(), Version: kind.Version, Namespace: namespace, Name: ref.name})
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return []*param{newParam(u)}, nil
	}
	selection := engine.Selection{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: namespace, Labels: ref.selector,
	}
	limit.Wait(r.ctx, func() {
		for u, failed := range r.world.Reader.List(r.ctx, selection) {
			if err = failed; err != nil {
				return
			}
			if out = append(out, newParam(u)); len(out) > limit.Elements {
				err = &limit.Error{What: "parameters that a selector names", Max: limit.Elements}
				return
			}
		}
	})
	slices.SortFunc(out, func(a, b *param) int { return strings.Compare(a.name, b.name) })
	return out, err
}

// newParam returns a parameter for expressions. A server holds built-in kinds as Go values without apiVersion
// and kind.
func newParam(u *unstructured.Unstructured) *param {
	p := &param{
		name: strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/"), content: u.Object,
		secret: engine.IsSecret(u),
	}
	if scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		p.content = maps.Clone(u.Object)
		delete(p.content, "apiVersion")
		delete(p.content, "kind")
	}
	return p
}
