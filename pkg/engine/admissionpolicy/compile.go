package admissionpolicy

import (
	"regexp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// compiler compiles the expressions of policies. Environments are made when they
// are first needed.
type compiler struct {
	warn              func(engine.CompileError)
	plain, withParams *cel.Environment
}

// environment returns what a server declares for the expressions of a policy.
func (c *compiler) environment(params bool) (*cel.Environment, error) {
	e := &c.plain
	if params {
		e = &c.withParams
	}
	if *e != nil {
		return *e, nil
	}
	var err error
	*e, err = cel.NewEnvironment(cel.Options{Params: params, Authorizer: true})
	return *e, err
}

// compile compiles a policy; errors go to the report, and leave it broken.
func (c *compiler) compile(r *policydecode.Report, p *policy) {
	environment, err := c.environment(p.params != nil)
	if err != nil {
		p.root().Fail("%w", err)
	} else {
		p.scope = environment.NewScope()
		p.compile()
	}
	if p.broken = len(r.Errs) > 0; !p.broken {
		p.lint()
	}
}

// identifier matches the names of variables that CEL accepts.
var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

func (p *policy) compile() {
	for _, v := range p.variables {
		if !identifier.MatchString(v.name) {
			v.expression.Fail("the name of the variable, %q, is no CEL identifier", v.name)
			continue
		}
		if text, ok := expressionOf(v.expression); ok {
			report(v.expression, p.scope.Variable(v.name, text))
		}
	}
	for i := range p.conditions {
		if text, ok := expressionOf(p.conditions[i].expression); ok {
			var err error
			p.conditions[i].compiled, err = p.scope.Condition(text)
			report(p.conditions[i].expression, err)
		}
	}
	for i := range p.mutations {
		m := &p.mutations[i]
		text, ok := expressionOf(m.expression)
		if !ok {
			continue
		}
		var err error
		switch m.patchType {
		case applyConfiguration:
			p.needsSchema = true
			m.compiled, err = p.scope.ApplyConfiguration(text, cel.RefuseAtomic)
		case jsonPatch:
			m.compiled, err = p.scope.JSONPatch(text)
		}
		report(m.expression, err)
	}
}

func expressionOf(n policydecode.Node) (string, bool) {
	text := n.Required()
	return text, text != ""
}

func report(n policydecode.Node, err error) {
	if err != nil {
		n.Fail("%w", err)
	}
}

// lint warns about what a server would refuse, and about what a preview cannot know.
func (p *policy) lint() {
	for _, v := range p.variables {
		p.scope.LintVariable(v.name, v.expression)
	}
	for _, m := range p.mutations {
		m.compiled.Lint(m.expression)
		p.traffic.Add(m.compiled.Expression)
	}
	for _, c := range p.conditions {
		p.traffic.Add(c.compiled)
		if c.compiled.Uses("variables") {
			c.expression.Lint("an API server refuses variables in match conditions")
		}
		c.compiled.LintCondition(c.expression)
	}
	p.asksParams = p.params != nil && p.uses("params")
	p.asksForNS = p.uses("namespaceObject")
	if p.asksUser = p.uses("request.userInfo"); p.asksUser {
		p.root().Lint(engine.RequestUserLint)
	}
	for i := range p.constraints.Rules {
		if slices.Contains(p.constraints.Rules[i].Operations, "DELETE") {
			p.root().Lint("an API server refuses DELETE in a resource rule: it mutates what is created or updated")
		}
	}
	if p.constraints.OnlySubresources() {
		p.root().Lint("its resource rules name only subresources: it is not evaluated on objects themselves")
	}
}

// uses reports whether any expression of the policy names something.
func (p *policy) uses(name string) bool {
	return p.scope.Uses(name) ||
		slices.ContainsFunc(p.conditions, func(c named) bool { return c.compiled.Uses(name) }) ||
		slices.ContainsFunc(p.mutations, func(m mutation) bool { return m.compiled.Uses(name) })
}
