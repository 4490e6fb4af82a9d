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
func (c *compiler) compile(r *policydecode.Report, p *policy, x expressions) {
	environment, err := c.environment(p.params != nil)
	if err != nil {
		p.root().Fail("%w", err)
		p.broken = true
		return
	}
	b := cel.Builder{Scope: environment.NewScope(), Failed: func(n policydecode.Node, err error) { n.Fail("%w", err) }}
	for _, v := range x.variables {
		if !identifier.MatchString(v.Name) {
			v.Fail("the name of the variable, %q, is no CEL identifier", v.Name)
			continue
		}
		b.Variables([]cel.Named{v})
	}
	p.scope, p.conditions, p.mutations = b.Scope, b.Conditions(x.conditions), b.Changes(x.mutations)
	p.needsSchema = slices.ContainsFunc(p.mutations, func(m cel.Change) bool { return !m.JSONPatch })
	p.traffic = p.scope.Traffic()
	if p.broken = len(r.Errs) > 0; p.broken {
		return
	}
	for i, c := range p.conditions {
		if c.Uses("variables") {
			x.conditions[i].Lint("an API server refuses variables in match conditions")
		}
	}
	b.Lint()
	p.lint()
}

// identifier matches the names of variables that CEL accepts.
var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// lint warns about what a server would refuse, and about what a preview cannot know.
func (p *policy) lint() {
	p.asksParams = p.params != nil && p.scope.Uses("params")
	p.asksForNS = p.scope.Uses("namespaceObject")
	if p.asksUser = p.scope.Uses("request.userInfo"); p.asksUser {
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
