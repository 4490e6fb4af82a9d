package admissionpolicy

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
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
	if c.Warn == nil {
		c.Warn = func(engine.CompileError) {}
	}
	compiler := &compiler{warn: c.Warn}
	var policies []*policy
	bindings := map[string][]*binding{} // by policy
	known := engine.PolicyNames{}       // policies, whether the user wants them or not
	keeps := c.Rules.Keeps()
	var errs []error
	for _, d := range c.Documents {
		gvk := d.Key.GroupVersionKind()
		if gvk.Group != apiGroup {
			continue
		}
		r := &policydecode.Report{Origin: d.Origin, Line: d.Line, Policy: gvk.Kind + " " + d.Key.Name, Warn: c.Warn, CheckKind: c.CheckKind}
		err := engine.Guard(func() error {
			switch gvk.Kind {
			case kindPolicy:
				p, x := decodePolicy(r, d)
				known.Add(d.Key.Name)
				if !keeps(p.ref) {
					r.Errs = nil
					return nil
				}
				compiler.compile(r, p, x)
				policies = append(policies, p)
			case kindBinding:
				b := decodeBinding(r, d)
				bindings[b.policy] = append(bindings[b.policy], b)
			}
			return nil
		})
		if err != nil {
			policydecode.Node{Report: r}.Fail("%w", err)
		}
		errs = append(errs, r.Errs...)
	}
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		if err := known.Check(name); err != nil && name != "" {
			for _, b := range bindings[name] {
				policydecode.Node{Report: b.report, Path: "spec.policyName"}.Lint("%w", err)
			}
		}
	}
	units := bind(policies, bindings, c.AssumeBinding)
	for i := range units {
		units[i].forget()
	}
	return newProgram(units), errors.Join(errs...)
}
