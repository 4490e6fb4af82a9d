package mutatingpolicy

import (
	"fmt"
	"slices"

	celgo "github.com/google/cel-go/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy/library"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// rule is a compiled policy, or one that is derived from it.
type rule struct {
	cel.Policy
	policy  *policy
	entries *library.Entries

	targetConditions []*cel.Expression
	annotations      []*cel.Expression
	target           *cel.Expression // nil unless an expression names the targets
	exceptions       []*exception

	library bool   // an expression calls what a library.Session answers
	impure  string // why another run may have another result
}

// compiler compiles the policies of a run.
type compiler struct {
	keeps        func(...engine.RuleRef) bool
	exceptions   []*exceptionSpec
	entries      *library.Entries
	environments map[bool]*cel.Environment // of namespaced policies, and of others
}

// compile returns the rule of a policy and those that are derived from it; none where
// anything is wrong.
func (c *compiler) compile(r *policydecode.Report, d engine.Document) []*rule {
	p := decodePolicy(r, d)
	if len(r.Errs) > 0 || (p.targets != nil && !p.existing) {
		return nil
	}
	environment, err := c.environment(p.Namespace != "")
	if err != nil {
		p.Fail("%w", err)
		return nil
	}
	rules := []*rule{c.rule(p, environment, nil)}
	for _, derived := range p.derivations() {
		if len(r.Errs) == 0 {
			rules = append(rules, c.rule(p, environment, &derived))
		}
	}
	if len(r.Errs) > 0 {
		return nil
	}
	if rules[0].impure != "" {
		p.at("mutations").Lint("%s: each run gives a different result; within one run, preview and apply agree", rules[0].impure)
	}
	if rules[0].AsksUser {
		p.Node.Lint(engine.RequestUserLint)
	}
	return slices.DeleteFunc(rules, func(x *rule) bool { return !c.keeps(x.Ref) })
}

// environment returns what the expressions of policies may name.
func (c *compiler) environment(namespaced bool) (*cel.Environment, error) {
	if known := c.environments[namespaced]; known != nil {
		return known, nil
	}
	e, err := cel.NewEnvironment(cel.Options{RequestObjects: true, PatchTypes: true, Extensions: library.Options(namespaced)})
	if err == nil {
		c.environments[namespaced] = e
	}
	return e, err
}

// rule compiles a policy as it is written, or as it is derived for controllers: everything, so that all errors are
// reported at once. The report says so where an expression is derived, since its text is in no file.
func (c *compiler) rule(p *policy, in *cel.Environment, derived *derivation) *rule {
	r := &rule{Policy: p.Policy, policy: p, entries: c.entries}
	b := cel.Builder{Scope: in.NewScope(), Atomics: p.atomics, Failed: func(n policydecode.Node, err error) {
		if n.Rule = r.Ref.Rule; derived != nil {
			err = fmt.Errorf("as derived for Pod controllers: %w", err)
		}
		n.Fail("%w", err)
	}}
	written := b
	if derived != nil {
		r.Ref.Rule, r.Constraints, b.Rewrite = "autogen-"+derived.name, derived.constraints(p.Constraints), derived.rewrite
	}
	b.Variables(p.variables)
	r.Scope, r.Conditions, r.Mutations = b.Scope, b.Conditions(p.conditions), b.Mutations(p.mutations)
	if derived == nil {
		b.Lint()
	}
	r.targetConditions = written.Conditions(p.targetConditions)
	if target := written.Values([]cel.Source{p.targetExpression},
		celgo.MapType(celgo.StringType, celgo.AnyType), celgo.MapType(celgo.StringType, celgo.DynType), celgo.DynType); len(target) > 0 {
		r.target = target[0]
	}
	r.annotations = written.Values(p.annotations, celgo.StringType)
	for _, x := range c.exceptions {
		if slices.Contains(x.policies, policyRef{p.Kind, p.Name}) {
			r.except(x, cel.Builder{Scope: in.NewScope(), Atomics: p.atomics, Failed: b.Failed})
		}
	}
	r.Complete()
	r.library, r.impure = library.Needs(r.Scope), library.Impure(r.Scope)
	return r
}

// except compiles an exception that names the policy; it does not see its variables. As
// in Kyverno, an exception that does not compile disables the policy.
func (r *rule) except(x *exceptionSpec, b cel.Builder) {
	if len(x.Report.Errs) == 0 {
		r.exceptions = append(r.exceptions, &exception{exceptionSpec: x, scope: b.Scope, conditions: b.Conditions(x.Conditions)})
		r.Scope.Join(b.Scope)
	}
	if len(x.Report.Errs) > 0 {
		r.policy.Fail("PolicyException %s, which names it, is broken: Kyverno takes such a policy out of service", x.Name)
	}
}

// asksOperation reports whether the expressions may depend on the operation.
func (r *rule) asksOperation() bool {
	return slices.ContainsFunc([]string{"request.operation", "oldObject", "request.oldObject"}, r.Scope.Uses)
}
