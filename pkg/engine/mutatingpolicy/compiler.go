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
	variants := []variant{{constraints: p.Constraints, rewrite: unchanged}}
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
	scope       *cel.Scope
	compiled    []*cel.Expression // all but the variables
}

// rule compiles everything, so that all errors are reported at once.
func (b *ruleBuilder) rule(d engine.Document) *rule {
	r := &rule{
		ref:    engine.RuleRef{Dialect: Name, Policy: b.DisplayName(), Rule: b.variant.rule, Origin: d.Origin, Severity: engine.SeverityOf(d.Object())},
		policy: b.settings, constraints: b.variant.constraints, entries: b.entries,
	}
	b.scope = b.environment.NewScope()
	r.scope = b.scope
	for _, v := range b.Variables {
		if err := b.scope.Variable(v.Name, v.Text); err != nil {
			b.failed(v.Node, err)
		} else if b.variant.rule == "" {
			b.scope.LintVariable(v.Name, v.Node)
		}
	}
	r.conditions = b.conditionsOf(b.scope, b.Conditions, b.rewrite)
	if b.variant.rule == "" && len(r.conditions) == len(b.Conditions) {
		for i, x := range b.Conditions {
			r.conditions[i].expression.LintCondition(x.Node)
		}
	}
	b.mutate(r)
	r.targetConditions = b.conditionsOf(b.scope, b.TargetConditions, unchanged)
	if x := b.TargetExpression; x.Text != "" {
		r.target = b.expression(x, celgo.MapType(celgo.StringType, celgo.AnyType), celgo.MapType(celgo.StringType, celgo.DynType), celgo.DynType)
	}
	for _, x := range b.Annotations {
		r.annotations = append(r.annotations, annotation{key: x.Name, field: x.Path, expression: b.expression(x, celgo.StringType)})
	}
	b.except(r)
	b.describe(r)
	r.asks = b.asked()
	return r
}

func unchanged(text string) string { return text }

// failed reports an expression that does not compile. The report says so where the
// expression is derived, since its text is in no file.
func (b *ruleBuilder) failed(n policydecode.Node, err error) {
	n.Rule = b.variant.rule
	if n.Rule != "" {
		err = fmt.Errorf("as derived for Pod controllers: %w", err)
	}
	n.Fail("%w", err)
}

func (b *ruleBuilder) expression(x expressionSpec, want ...*celgo.Type) *cel.Expression {
	compiled, err := b.scope.Compile(x.Text, want...)
	if err != nil {
		b.failed(x.Node, err)
		return nil
	}
	b.compiled = append(b.compiled, compiled)
	return compiled
}

func (b *ruleBuilder) conditionsOf(scope *cel.Scope, written []expressionSpec, rewrite func(string) string) []condition {
	var out []condition
	for _, x := range written {
		compiled, err := scope.Condition(rewrite(x.Text))
		if err != nil {
			b.failed(x.Node, err)
			continue
		}
		b.compiled = append(b.compiled, compiled)
		out = append(out, condition{field: x.Path, name: x.Name, expression: compiled})
	}
	return out
}

func (b *ruleBuilder) mutate(r *rule) {
	atomics := cel.RefuseAtomic
	if b.ServerSide {
		atomics = cel.ReplaceAtomic
	}
	for _, m := range b.Mutations {
		var compiled *cel.Mutation
		var err error
		if m.JSONPatch {
			compiled, err = b.scope.JSONPatch(m.Text)
		} else {
			compiled, err = b.scope.ApplyConfiguration(b.rewrite(m.Text), atomics)
			r.merges = true
		}
		if err != nil {
			b.failed(m.Node, err)
			continue
		}
		if b.variant.rule == "" {
			compiled.Lint(m.Node)
		}
		b.compiled = append(b.compiled, compiled.Expression)
		r.mutations = append(r.mutations, mutation{field: m.Path, Mutation: compiled})
	}
}

// except compiles the exceptions that name the policy; they do not see its variables. As
// in Kyverno, an exception that does not compile disables the policy.
func (b *ruleBuilder) except(r *rule) {
	for _, x := range b.exceptions {
		if !x.Names(b.policySpec) {
			continue
		}
		scope := b.environment.NewScope()
		if len(x.Report.Errs) == 0 {
			conditions := b.conditionsOf(scope, x.Conditions, unchanged)
			r.exceptions = append(r.exceptions, &exception{exceptionSpec: x, scope: scope, conditions: conditions})
			b.errs = append(b.errs, x.Report.Errs...)
		}
		if len(x.Report.Errs) > 0 {
			b.Fail("PolicyException %s, which names it, is broken: Kyverno takes such a policy out of service", x.Name)
		}
	}
}

// describe records what the expressions ask for.
func (b *ruleBuilder) describe(r *rule) {
	for _, x := range b.compiled {
		r.traffic.Add(x)
	}
	for _, x := range append(b.expressions(), b.scope) {
		r.library = r.library || library.Needs(x)
		r.asksUser = r.asksUser || x.Uses("request.userInfo")
		r.asksRequest = r.asksRequest || x.Uses("request")
		if reason := library.Impure(x); reason != "" {
			r.impure = reason
		}
		for _, name := range []string{"request.operation", "oldObject", "request.oldObject"} {
			r.asksOperation = r.asksOperation || x.Uses(name)
		}
		// What is evaluated on the targets of another object sees no Namespace.
		r.asksNamespace = r.asksNamespace || r.policy.Targets == nil && x.Uses("namespaceObject")
	}
	for _, c := range r.conditions {
		r.asksNamespace = r.asksNamespace || c.expression.Uses("namespaceObject")
	}
	r.asksNamespace = r.asksNamespace || r.target != nil && r.target.Uses("namespaceObject") || b.scope.Uses("namespaceObject")
}

func (b *ruleBuilder) expressions() []library.Expression {
	out := make([]library.Expression, len(b.compiled))
	for i, x := range b.compiled {
		out[i] = x
	}
	return out
}
