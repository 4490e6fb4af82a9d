package admissionpolicy

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Name is the name of the dialect in reports.
const Name = "admissionpolicy"

const (
	apiGroup    = "admissionregistration.k8s.io"
	kindPolicy  = "MutatingAdmissionPolicy"
	kindBinding = "MutatingAdmissionPolicyBinding"
)

// fromCluster is the origin of installed documents.
const fromCluster = "cluster"

// Dialect reads MutatingAdmissionPolicies of the versions v1, v1beta1 and v1alpha1.
type Dialect struct{}

// New returns the dialect.
func New() *Dialect { return &Dialect{} }

// Name is "admissionpolicy".
func (*Dialect) Name() string { return Name }

// Accepts returns Policy for policies and Input for bindings. Only policies name the kinds of parameters,
// which are read on demand.
func (*Dialect) Accepts(gk schema.GroupKind) engine.Role {
	switch gk {
	case schema.GroupKind{Group: apiGroup, Kind: kindPolicy}:
		return engine.Policy
	case schema.GroupKind{Group: apiGroup, Kind: kindBinding}:
		return engine.Input
	}
	return engine.Foreign
}

// Compile compiles policies and joins them with their bindings. Invalid ones are omitted and reported, with
// the place in the expression.
func (*Dialect) Compile(c engine.Compilation) (engine.Program, error) {
	var policies []*policy
	bindings := map[string][]*binding{} // by policy
	known := engine.PolicyNames{}       // policies, including those that the user excludes
	keeps, environments := c.Rules.Keeps(), map[bool]*cel.Environment{}
	var reports []*policydecode.Report
	for _, d := range c.Documents {
		gvk := d.Key.GroupVersionKind()
		if gvk.Group != apiGroup {
			continue
		}
		r := policydecode.NewReport(d, gvk.Kind+" "+d.Key.Name, &c)
		switch gvk.Kind {
		case kindPolicy:
			known.Add(d.Key.Name)
			p, x := decodePolicy(r, d)
			if !keeps(p.Ref) {
				continue
			}
			environment, err := environmentOf(environments, p.params != nil)
			if err != nil {
				return nil, err
			}
			p.compile(x, environment)
			policies = append(policies, p)
		case kindBinding:
			b := decodeBinding(r, d)
			bindings[b.policy] = append(bindings[b.policy], b)
		}
		reports = append(reports, r)
	}
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		if err := known.Check(name); err != nil && name != "" {
			for _, b := range bindings[name] {
				policydecode.Node{Report: b.Report, Path: "spec.policyName"}.Lint("%w", err)
			}
		}
	}
	p := &program{units: bind(policies, bindings, c.AssumeBinding)}
	for i := range p.units {
		p.Add(p.units[i].describe())
		p.asksUser = p.asksUser || p.units[i].AsksUser()
	}
	var errs []error
	for _, r := range reports {
		errs = append(errs, r.Errs...)
		r.Line = nil // let the documents be freed
	}
	return p, errors.Join(errs...)
}

// environmentOf returns a server's declarations for the expressions of a policy, with or without params.
func environmentOf(known map[bool]*cel.Environment, params bool) (*cel.Environment, error) {
	if e := known[params]; e != nil {
		return e, nil
	}
	e, err := cel.NewEnvironment(cel.Options{Params: params, Authorizer: true, Unquoted: true})
	known[params] = e
	return e, err
}

// program is all policies with their bindings, in order.
type program struct {
	engine.Descriptions
	units    []unit
	asksUser bool // some policy uses request user information
}

// invoked has the policies that ran in the first round and want to run again, by policy, binding and
// parameter.
type invoked map[engine.RuleRef]bool

// Evaluate runs the policies. The second round runs only those that ran in the first and want reinvocation;
// like an API server, it takes place whenever any mutation was applied.
func (p *program) Evaluate(
	ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink,
) (*unstructured.Unstructured, error) {
	r := &run{
		ctx: ctx, target: t, world: w, object: t.Object, sink: sink, asksUser: p.asksUser,
		excluded: excluded(t), reinvocable: invoked{},
	}
	r.candidate, r.fields = r.request()
	if t.Request.Reinvocation {
		if t.Invocation != nil {
			r.again, _ = t.Invocation.Kept.(invoked)
		}
		if len(r.again) == 0 {
			return t.Object, ctx.Err()
		}
	}
	for i := range p.units {
		if err := r.unit(&p.units[i]); err != nil {
			return nil, err
		}
	}
	if t.Invocation != nil && !t.Request.Reinvocation {
		t.Invocation.Kept = r.reinvocable
		t.Invocation.Again = r.applied && len(r.reinvocable) > 0 && r.denied == ""
	}
	engine.HandOver(sink, r.steps, r.denied)
	if r.denied != "" { // nothing changes a denied object
		return t.Object, ctx.Err()
	}
	return r.object, ctx.Err()
}

// excluded returns why no policy of the API ever sees the object, or "" (pkg/admission/plugin/policy/generic
// in k8s.io/apiserver).
func excluded(t engine.Target) string {
	switch t.Key.Group {
	case apiGroup:
		switch t.Key.Kind {
		case kindPolicy, kindBinding, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			return "admission policies and their bindings"
		}
	case "authentication.k8s.io", "authorization.k8s.io":
		return "reviews of access"
	}
	if t.Request.Operation == engine.OperationDelete {
		return "what is being deleted"
	}
	return ""
}

// describe describes the policy. Its binding narrows its matches at evaluation.
func (u *unit) describe() engine.Description {
	d := u.Policy.Describe()
	d.Rule = u.rule()
	// no live object corresponds to a request to a subresource
	d.Matches, d.Requests = engine.SplitRequests(u.Constraints.Selections(""))
	if u.binding != nil && u.binding.resources != nil {
		d.AsksOperation = d.AsksOperation || u.binding.resources.AsksOperation()
		for _, text := range u.binding.resources.Describe() {
			d.Where = append(d.Where, "by its binding, "+text)
		}
	}
	d.Asks = u.asks()
	for i := range d.Asks {
		if d.Asks[i].Of == engine.AskObjects {
			d.Params = append(d.Params, d.Asks[i].Objects)
		}
	}
	return d
}

// reviews is the API path of access reviews.
const reviews = "/apis/authorization.k8s.io/v1/"

func (u *unit) asks() []engine.Ask {
	var out []engine.Ask
	if u.params != nil && u.binding != nil && u.binding.params != nil {
		ref := u.binding.params
		out = append(out,
			engine.Ask{Of: engine.AskObjects, What: "parameters of kind " + u.params.Kind, Objects: engine.Selection{
				Group: u.params.Group, Version: u.params.Version, Kind: u.params.Kind,
				Namespace: cmp.Or(ref.namespace, engine.Computed), Name: ref.name, Labels: ref.selector,
			}})
	}
	if u.AsksUser() {
		out = append(out, engine.AskRequestUser())
	}
	switch {
	case u.Scope.Uses("serviceAccount()"):
		out = append(out, engine.Ask{
			Of: engine.AskAccess, What: "what a service account may do", Method: "POST",
			Path: reviews + "subjectaccessreviews",
		})
	case u.Scope.Uses("authorizer"):
		out = append(out, engine.Ask{
			Of: engine.AskAccess, What: "what the user may do", Method: "POST",
			Path: reviews + "selfsubjectaccessreviews",
		})
	}
	return out
}
