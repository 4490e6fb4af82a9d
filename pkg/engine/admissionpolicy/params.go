package admissionpolicy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// param is a parameter of a binding.
type param struct {
	name    string // "shop/limits"
	content map[string]any
	secret  bool // it is a Secret
}

// refOf returns the reference of a policy with its binding and a parameter.
func (u *unit) refOf(p *param) engine.RuleRef {
	if p == nil {
		return u.rule()
	}
	return u.rule().WithParameter(u.params.Kind + " " + p.name)
}

// params returns the parameters that a policy is evaluated with: a single nil where it has
// no paramKind. Where none is found, the error is a *noParameterError.
func (r *run) params(u *unit) ([]*param, error) {
	if u.binding == nil && u.asksParams {
		return nil, &cel.UnsupportedError{Reason: fmt.Sprintf("params would be a %s, which the paramRef of a %s names", u.params.Kind, kindBinding)}
	}
	if u.params == nil || u.binding == nil || u.binding.params == nil {
		return []*param{nil}, nil
	}
	if r.world.Reader == nil {
		return nil, &cel.UnsupportedError{Reason: "parameters need a cluster, or manifests, to be read from"}
	}
	ref := u.binding.params
	namespace, err := r.paramNamespace(u)
	if err != nil {
		return nil, &parameterError{err}
	}
	found, err := r.readParams(paramQuery{kind: *u.params, namespace: namespace, binding: u.binding})
	if err != nil {
		return nil, &parameterError{err}
	}
	if len(found) == 0 {
		return nil, &parameterError{&noParameterError{denies: ref.denies, wants: engine.Selection{
			Group: u.params.Group, Kind: u.params.Kind, Namespace: namespace, Name: ref.name, Labels: ref.selector,
		}}}
	}
	return found, nil
}

// paramNamespace is where a server looks for parameters: nowhere in particular
// for a kind without namespaces, else where the binding says, or where the object is.
func (r *run) paramNamespace(u *unit) (string, error) {
	if r.world.Mapper == nil {
		return "", fmt.Errorf("paramKind %s is not known", u.params.Kind)
	}
	mapping, err := r.world.Mapper.RESTMapping(u.params.GroupKind(), u.params.Version)
	if err != nil {
		return "", fmt.Errorf("paramKind %s is not known: %w", u.params.Kind, err)
	}
	own := u.binding.params.namespace
	switch objects := r.request(false).candidate.Namespace; {
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

// paramQuery is what a binding asks for; a key of the Memo.
type paramQuery struct {
	kind      schema.GroupVersionKind
	namespace string
	binding   *binding
}

// readParams reads the parameters of a binding, once for all objects with the same
// query.
func (r *run) readParams(q paramQuery) ([]*param, error) {
	value, err := r.world.Memo.Ask(r.ctx, q, func(ctx context.Context) (any, error) { return r.findParams(ctx, q) })
	if err != nil {
		return nil, err
	}
	objects := value.([]*unstructured.Unstructured) // it is what was put in
	out := make([]*param, len(objects))
	for i, u := range objects {
		out[i] = newParam(u)
	}
	return out, nil
}

func (r *run) findParams(ctx context.Context, q paramQuery) ([]*unstructured.Unstructured, error) {
	ref := q.binding.params
	if ref.name != "" {
		key := engine.ObjectKey{GroupKind: q.kind.GroupKind(), Version: q.kind.Version, Namespace: q.namespace, Name: ref.name}
		u, err := r.world.Reader.Get(ctx, key)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []*unstructured.Unstructured{u}, nil
	}
	var out []*unstructured.Unstructured
	selection := engine.Selection{
		Group: q.kind.Group, Version: q.kind.Version, Kind: q.kind.Kind, Namespace: q.namespace, Labels: ref.selector,
	}
	for u, err := range r.world.Reader.List(ctx, selection) {
		if err != nil {
			return nil, err
		}
		if out = append(out, u); len(out) > r.world.Limits.Elements {
			return nil, &limit.Error{What: "parameters that a selector names", Max: r.world.Limits.Elements}
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(paramName(a), paramName(b)) })
	return out, nil
}

// newParam returns a parameter as expressions see it. A server holds its built-in kinds as
// Go values without apiVersion and kind.
func newParam(u *unstructured.Unstructured) *param {
	p := &param{name: paramName(u), content: u.Object, secret: engine.IsSecret(u)}
	if scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		p.content = maps.Clone(u.Object)
		delete(p.content, "apiVersion")
		delete(p.content, "kind")
	}
	return p
}

func paramName(u *unstructured.Unstructured) string {
	if ns := u.GetNamespace(); ns != "" {
		return ns + "/" + u.GetName()
	}
	return u.GetName()
}
