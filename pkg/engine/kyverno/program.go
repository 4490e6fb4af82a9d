package kyverno

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// program is all rules by policy name, in policy order, derived rules last. It is an engine.Propagator.
type program struct {
	engine.Descriptions
	rules  []*rule
	byKind sync.Map // candidate rules, by requested kind
}

func newProgram(policies []*policy) *program {
	p := &program{}
	for _, policy := range policies {
		p.rules = append(p.rules, policy.rules...)
	}
	for _, r := range p.rules {
		p.Add(r.describe())
	}
	return p
}

// Evaluate runs the rules without targets. Each sees the object as the previous rule left it; one that fails
// leaves it unchanged.
func (p *program) Evaluate(ctx context.Context, t engine.Target, w *engine.World,
	sink engine.Sink,
) (*unstructured.Unstructured, error) {
	err := p.visit(ctx, &t, sink, false, func(r *rule) bool {
		step := r.run(ctx, &t, w, sink, func(e *execution, s *variables.Scope) engine.Step {
			return e.ended(r.mutation.mutate(e, s, t.Object.Object, e.why))
		})
		sink.Step(step)
		if step.Outcome != engine.Changed {
			return false
		}
		t = t.With(step.After)
		t.Tainted = t.Tainted || step.Taints()
		return true
	})
	if err != nil {
		return nil, err
	}
	return t.Object, ctx.Err()
}

// run evaluates a rule on an object for the simulated operation, and continues if it is admitted. A panic
// fails only this rule.
func (r *rule) run(ctx context.Context, t *engine.Target, w *engine.World, sink engine.Sink,
	goOn func(*execution, *variables.Scope) engine.Step,
) (step engine.Step) {
	e := newExecution(ctx, w, r, t, sink)
	defer func() { e.end() }()
	e.matched.Operation = r.simulated(t)
	err := engine.Guard(func() error {
		scope, err := e.admit()
		if err == nil {
			step = goOn(e, scope)
		}
		return err
	})
	if err != nil {
		return e.ended(patchResult{}, err)
	}
	return step
}

// simulated returns the operation to evaluate; the user's values take precedence.
func (r *rule) simulated(t *engine.Target) engine.Operation {
	for _, o := range []engine.Operation{engine.Operation(r.policy.inputs.values.Operation(r.policy.name,
		t.Key.Name)), t.Request.Operation} {
		switch o {
		case engine.OperationCreate, engine.OperationUpdate, engine.OperationDelete:
			return o
		}
	}
	return engine.OperationUpdate
}

// admit checks match, preconditions and exceptions, in Kyverno's order. It returns the scope of the rule, or
// the error that stops it.
func (e *execution) admit() (*variables.Scope, error) {
	r := e.rule
	err := r.applies(&e.matched)
	if err == nil && len(r.targets) == 0 {
		err = e.matched.Ignored.By(r.ref)
	}
	if err == nil {
		err = r.gap
	}
	if err == nil {
		err = e.unknownUser(r.asksUser.early)
	}
	if err != nil {
		return nil, err
	}
	scope := e.begin()
	if err = e.meets(r.preconditions, scope, "preconditions"); err == nil {
		err = e.excepted(scope)
	}
	if err == nil {
		err = e.unknownUser(r.asksUser.late)
	}
	return scope, err
}

// applies checks match and exclude, the namespace of a Policy, and Kyverno's resourceFilters, which do not
// cover the targets of a rule.
func (r *rule) applies(c *match.Candidate) error {
	ns, says := r.policy.namespace, ""
	switch {
	case c.World.Filtered != nil && c.World.Filtered(c.Key):
		says = "Kyverno's resourceFilters leave the object out"
	case ns != "" && c.Object.GetNamespace() != ns:
		return c.NotMatched(func() error {
			return engine.NewMismatch("namespace of the Policy", ns,
				match.NamespaceOf(c.Object))
		})
	case c.Operation == engine.OperationDelete && (len(r.targets) == 0 || !r.match.NamesDeletion()):
		says = "a deletion only triggers rules with targets that name DELETE in operations"
	}
	if says != "" {
		return c.NotMatched(func() error { return engine.Mismatch{Criterion: says} })
	}
	if err := r.match.Match(c); err != nil {
		return err
	}
	return r.exclude.Exclude(c)
}

func (p *program) rulesFor(kind string) []*rule {
	if known, ok := p.byKind.Load(kind); ok {
		return known.([]*rule)
	}
	var may []*rule
	for _, r := range p.rules {
		if slices.ContainsFunc(r.match.Kinds(),
			func(k selector.Kind) bool { return selector.MatchWildcard(k.Kind, kind) }) {
			may = append(may, r)
		}
	}
	p.byKind.Store(kind, may)
	return may
}

// visit runs the rules with or without targets that may match an object (all of them if the sink wants
// reasons). run reports the steps of a rule, and returns whether it did something; applyRules: One then skips
// the rest of its policy.
func (p *program) visit(ctx context.Context, t *engine.Target, sink engine.Sink, targets bool,
	run func(*rule) bool,
) error {
	may, did := p.rulesFor(t.Key.Kind), "has changed the object"
	rules := may
	if sink.Wants(engine.NotMatched) {
		rules = p.rules
	}
	if targets {
		did = "has named its targets"
	}
	var applied *rule // the rest of its policy is skipped
	for _, r := range rules {
		if targets != (len(r.targets) > 0) {
			continue
		}
		if applied != nil && applied.policy == r.policy && slices.Contains(may, r) {
			err := &engine.SkippedError{Reason: "applyRules is One, and rule " + applied.ref.Rule + " " + did}
			sink.Step(r.step(t.Key, engine.Skipped, err))
			continue
		}
		done := run(r)
		if err := ctx.Err(); err != nil {
			return err
		}
		if done && r.policy.applyOne {
			applied = r
		}
	}
	return nil
}
