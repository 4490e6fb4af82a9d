package admissionpolicy

import (
	"errors"
	"maps"
	"slices"

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

// fromCluster is the origin of documents that are installed.
const fromCluster = "cluster"

// Dialect reads MutatingAdmissionPolicies of the versions v1, v1beta1 and v1alpha1.
type Dialect struct{}

// New returns the dialect.
func New() *Dialect { return &Dialect{} }

// Name is "admissionpolicy".
func (*Dialect) Name() string { return Name }

// Accepts returns Policy for policies and Input for bindings. Only the policies say which
// kinds are parameters; these are read when they are needed.
func (*Dialect) Accepts(gk schema.GroupKind) engine.Role {
	switch gk {
	case schema.GroupKind{Group: apiGroup, Kind: kindPolicy}:
		return engine.Policy
	case schema.GroupKind{Group: apiGroup, Kind: kindBinding}:
		return engine.Input
	}
	return engine.Foreign
}

// Compile compiles policies and joins them with their bindings. What does not
// compile is left out and reported, with the place in the expression.
func (*Dialect) Compile(c engine.Compilation) (engine.Program, error) {
	var policies []*policy
	bindings := map[string][]*binding{} // by policy
	known := engine.PolicyNames{}       // policies, whether the user wants them or not
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
				policydecode.Node{Report: b.report, Path: "spec.policyName"}.Lint("%w", err)
			}
		}
	}
	p := &program{units: bind(policies, bindings, c.AssumeBinding)}
	for i := range p.units {
		p.Add(p.units[i].describe())
		p.asksUser = p.asksUser || p.units[i].AsksUser
	}
	var errs []error
	for _, r := range reports {
		errs = append(errs, r.Errs...)
		r.Line = nil // the documents need not be kept
	}
	return p, errors.Join(errs...)
}

// environmentOf returns what a server declares for the expressions of a policy, with params or without.
func environmentOf(known map[bool]*cel.Environment, params bool) (*cel.Environment, error) {
	if e := known[params]; e != nil {
		return e, nil
	}
	e, err := cel.NewEnvironment(cel.Options{Params: params, Authorizer: true, Unquoted: true})
	known[params] = e
	return e, err
}
