package mutatingpolicy

import (
	"fmt"
	"slices"

	celgo "github.com/google/cel-go/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy/library"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// compiler compiles the policies of a run.
type compiler struct {
	keeps        func(...engine.RuleRef) bool
	exceptions   []*exceptionSpec
	entries      *library.Entries
	environments map[bool]*cel.Environment // of namespaced policies, and of others
	errs         []error                   // of exceptions, each reported once
}

// compile returns the rule of a policy and those that are derived from it; none where
// anything is wrong.
func (c *compiler) compile(r *policydecode.Report, d engine.Document) []*rule {
	p := decodePolicy(r, d)
	if len(r.Errs) > 0 || (p.Targets != nil && !p.Existing) {
		return nil
	}
	environment, err := c.environment(p.Namespace != "")
	if err != nil {
		p.Fail("%w", err)
		return nil
	}
	variants := []variant{{constraints: p.Constraints}}
	for _, derivation := range p.Derivations() {
		variants = append(variants, derived(p, derivation))
	}
	var rules []*rule
	for _, v := range variants {
		build := ruleBuilder{compiler: c, environment: environment, policySpec: p, variant: v}
		rules = append(rules, build.rule(d))
		if len(r.Errs) > 0 {
			return nil
		}
	}
	if rules[0].impure != "" {
		p.At("mutations").Lint("%s: each run gives a different result; within one run, preview and apply agree", rules[0].impure)
	}
	if rules[0].asksUser {
		p.Lint(engine.RequestUserLint)
	}
	return slices.DeleteFunc(rules, func(x *rule) bool { return !c.keeps(x.ref) })
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

// variant is a policy as it is written, or as it is derived for controllers.
type variant struct {
	rule        string // the name of the derived one; empty for the policy as it is written
	constraints *match.Constraints
	rewrite     func(expression string) string
}

func derived(p *policySpec, d derivation) variant {
	return variant{rule: "autogen-" + d.Name, constraints: d.constraints(p.Constraints), rewrite: d.Rewrite}
}

// ruleBuilder compiles the expressions of one variant of a policy.
type ruleBuilder struct {
	*compiler
	*policySpec
	variant
	environment *cel.Environment
}

// rule compiles everything, so that all errors are reported at once.
func (b *ruleBuilder) rule(d engine.Document) *rule {
	about := b.builder(b.rewrite)
	written := cel.Builder{Scope: about.Scope, Failed: b.failed}
	about.Variables(b.Variables)
	r := &rule{
		ref:    engine.RuleRef{Dialect: Name, Policy: b.DisplayName(), Rule: b.variant.rule, Origin: d.Origin, Severity: engine.SeverityOf(d.Object())},
		policy: b.settings, constraints: b.variant.constraints, entries: b.entries, scope: about.Scope,
		conditions: about.Conditions(b.Conditions), mutations: about.Changes(b.Mutations), targetConditions: written.Conditions(b.TargetConditions),
	}
	r.merges = slices.ContainsFunc(r.mutations, func(m cel.Change) bool { return !m.JSONPatch })
	if b.variant.rule == "" {
		about.Lint()
	}
	if x := b.TargetExpression; x.Text != "" {
		r.target = b.expression(r.scope, x, celgo.MapType(celgo.StringType, celgo.AnyType), celgo.MapType(celgo.StringType, celgo.DynType), celgo.DynType)
	}
	for _, x := range b.Annotations {
		r.annotations = append(r.annotations, annotation{key: x.Name, field: x.Path, expression: b.expression(r.scope, x, celgo.StringType)})
	}
	b.except(r)
	b.describe(r)
	return r
}

func (b *ruleBuilder) builder(rewrite func(string) string) cel.Builder {
	out := cel.Builder{Scope: b.environment.NewScope(), Failed: b.failed, Rewrite: rewrite}
	if b.ServerSide {
		out.Atomics = cel.ReplaceAtomic
	}
	return out
}

// failed reports an expression that does not compile. The report says so where the
// expression is derived, since its text is in no file.
func (b *ruleBuilder) failed(n policydecode.Node, err error) {
	n.Rule = b.variant.rule
	if n.Rule != "" {
		err = fmt.Errorf("as derived for Pod controllers: %w", err)
	}
	n.Fail("%w", err)
}

func (b *ruleBuilder) expression(scope *cel.Scope, x cel.Named, want ...*celgo.Type) *cel.Expression {
	compiled, err := scope.Compile(x.Text, want...)
	if err != nil {
		b.failed(x.Node, err)
	}
	return compiled
}

// except compiles the exceptions that name the policy; they do not see its variables. As
// in Kyverno, an exception that does not compile disables the policy.
func (b *ruleBuilder) except(r *rule) {
	for _, x := range b.exceptions {
		if !x.Names(b.policySpec) {
			continue
		}
		if len(x.Report.Errs) == 0 {
			own := b.builder(nil)
			r.exceptions = append(r.exceptions, &exception{exceptionSpec: x, scope: own.Scope, conditions: own.Conditions(x.Conditions)})
			r.scope.Join(own.Scope)
			b.errs = append(b.errs, x.Report.Errs...)
		}
		if len(x.Report.Errs) > 0 {
			b.Fail("PolicyException %s, which names it, is broken: Kyverno takes such a policy out of service", x.Name)
		}
	}
}

// describe records what the expressions ask for.
func (b *ruleBuilder) describe(r *rule) {
	uses := func(names ...string) bool { return slices.ContainsFunc(names, r.scope.Uses) }
	r.traffic, r.library, r.impure = r.scope.Traffic(), library.Needs(r.scope), library.Impure(r.scope)
	r.asksUser, r.asksRequest = uses("request.userInfo"), uses("request")
	r.asksOperation = uses("request.operation", "oldObject", "request.oldObject")
	// What is evaluated on the targets of another object sees no Namespace.
	r.asksNamespace = r.policy.Targets == nil && uses("namespaceObject") || r.scope.VariablesUse("namespaceObject") ||
		r.target != nil && r.target.Uses("namespaceObject") ||
		slices.ContainsFunc(r.conditions, func(c cel.Condition) bool { return c.Uses("namespaceObject") })
	r.asks = library.Asks(library.Asking{Scope: r.scope, Namespace: b.Namespace, Entries: b.entries})
}
