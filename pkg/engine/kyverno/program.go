package kyverno

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// program is all policies, by name. It is an engine.Propagator.
type program struct {
	policies   []*policy
	refs       []engine.RuleRef
	selections []engine.Selection
	own        *ruleIndex // of the rules without targets
	triggered  *ruleIndex // of those with targets
}

func newProgram(policies []*policy) *program {
	var selections engine.SelectionSet
	p := &program{policies: policies, own: newRuleIndex(policies, false), triggered: newRuleIndex(policies, true)}
	for _, policy := range policies {
		for _, r := range policy.rules {
			selections.Add(r.match.Selections(policy.namespace)...)
			p.refs = append(p.refs, r.ref)
		}
	}
	p.selections = selections.All
	return p
}

// Rules lists the rules by policy, in the order of the policy, derived ones last.
func (p *program) Rules() []engine.RuleRef { return p.refs }

// Selections names what the rules match.
func (p *program) Selections() []engine.Selection { return p.selections }

// Propagates reports whether there is a rule with targets.
func (p *program) Propagates() bool { return len(p.triggered.rules) > 0 }

// Evaluate runs the rules without targets. Each sees the object as the rule
// before it left it; one that fails leaves it as it was.
func (p *program) Evaluate(ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink) (*unstructured.Unstructured, error) {
	err := p.own.visit(ctx, &t, w, sink, func(r *rule) ([]engine.Step, bool) {
		step := r.run(ctx, t, w, sink)
		changed := step.Outcome == engine.Changed
		if changed {
			t = t.With(step.After)
			t.Tainted = t.Tainted || step.Taints()
		}
		return []engine.Step{step}, changed
	})
	if err != nil {
		return nil, err
	}
	return t.Object, ctx.Err()
}

// skipKind reports a rule that the index has ruled out already.
func (r *rule) skipKind(ctx context.Context, t *engine.Target, w *engine.World, sink engine.Sink) {
	step := engine.Step{Rule: r.ref, Outcome: engine.NotMatched}
	if len(r.targets) > 0 {
		step.Trigger = t.Key
	}
	if sink.Wants(engine.NotMatched) {
		e := newExecution(ctx, w, r, *t, engine.OperationUpdate)
		if m, err := r.match.Match(&e.matched); err == nil && !m.Applies() {
			step.Err = m.Explain(&e.matched)
		}
	}
	sink.Step(step)
}

// run evaluates a rule on what it matches, for the operation that the run simulates.
func (r *rule) run(ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink) engine.Step {
	operation, open := r.simulated(t)
	return newExecution(ctx, w, r, t, operation).eitherWay(open, func(e *execution) []engine.Step {
		return []engine.Step{r.runAs(e, sink)}
	})[0]
}

// eitherWay runs a rule for its operation. Where that is left open, the object is being updated; a rule that
// only the operation can have excluded is then run as if the object were
// created, and that counts if it runs.
func (e *execution) eitherWay(open bool, run func(*execution) []engine.Step) []engine.Step {
	steps := run(e)
	if !open || !e.rule.asksOperation || len(steps) != 1 || !heldBack(steps[0].Outcome) {
		return steps
	}
	created := run(e.asCreated())
	if len(created) == 1 && heldBack(created[0].Outcome) {
		return []engine.Step{triedTwice(steps[0], created[0])}
	}
	for i := range created {
		created[i].AsCreated = true
	}
	return created
}

// triedTwice is the step of a rule that does not match an update, with why it
// goes no further as a creation, which it matches.
func triedTwice(step, created engine.Step) engine.Step {
	if step.Outcome == engine.NotMatched && step.Err != nil && created.Outcome == engine.Skipped {
		step.Err = &TriedTwiceError{Err: step.Err, AsCreated: created.Err}
		step.Confidential, step.Writes = created.Confidential, created.Writes
	}
	return step
}

// simulated returns the operation to evaluate, and whether another may be tried. The
// user's values come first.
func (r *rule) simulated(t engine.Target) (operation engine.Operation, open bool) {
	o := cmp.Or(r.operation(t), t.Request.Operation)
	if o == "" || o == engine.OperationAuto {
		return engine.OperationUpdate, true
	}
	return o, false
}

func heldBack(o engine.Outcome) bool { return o == engine.NotMatched || o == engine.Skipped }

func (r *rule) runAs(e *execution, sink engine.Sink) engine.Step {
	defer func() { e.end() }()
	return e.guarded(func() engine.Step {
		scope, step := r.admit(e, sink)
		if scope == nil {
			return step
		}
		e.explain(sink)
		return e.step(r.mutation.mutate(e, scope, e.patched()))
	})
}

// admit takes a rule through match, preconditions and exceptions, in Kyverno's
// order. It returns the scope to go on with, or else what stopped the rule.
func (r *rule) admit(e *execution, sink engine.Sink) (*variables.Scope, engine.Step) {
	step := engine.Step{Rule: r.ref}
	m, err := r.applies(&e.matched)
	switch {
	case err != nil:
		return nil, e.step(patchResult{}, err)
	case !m.Applies():
		step.Outcome = engine.NotMatched
		if sink.Wants(engine.NotMatched) {
			step.Err = m.Explain(&e.matched)
		}
		return nil, step
	case r.gap != nil:
		return nil, e.step(patchResult{}, r.gap)
	}
	if err := e.unknownUser(r.asksUser.early); err != nil {
		return nil, e.step(patchResult{}, err)
	}
	scope := e.begin()
	if err := e.meets(r.preconditions, scope, "preconditions"); err != nil {
		return nil, e.step(patchResult{}, err)
	}
	if err := e.excepted(scope); err != nil {
		return nil, e.step(patchResult{}, err)
	}
	if err := e.unknownUser(r.asksUser.late); err != nil {
		return nil, e.step(patchResult{}, err)
	}
	return scope, step
}

// applies decides match and exclude, that a Policy keeps to its namespace, and Kyverno to
// its resourceFilters, which are not for the targets of a rule.
func (r *rule) applies(c *match.Candidate) (match.Result, error) {
	if c.World.Filtered != nil && c.World.Filtered(c.Key) {
		return match.FilteredOut(), nil
	}
	if ns := r.policy.namespace; ns != "" && c.Object.GetNamespace() != ns {
		return match.OutsideNamespace(ns), nil
	}
	if c.Operation == engine.OperationDelete && (len(r.targets) == 0 || !r.match.NamesDeletion()) {
		return match.DeletionIgnored(), nil
	}
	if m, err := r.match.Match(c); err != nil || !m.Applies() {
		return m, err
	}
	return r.exclude.Exclude(c)
}

// ruleIndex finds the rules that may match an object of a kind without asking each of them.
type ruleIndex struct {
	rules  []*rule  // in evaluation order
	byKind sync.Map // the places of rules, by the kinds that were asked for
	did    string   // what keeps the rest of a policy with applyRules: One from running
}

// newRuleIndex returns an index of the rules with targets, or of those without.
func newRuleIndex(policies []*policy, targets bool) *ruleIndex {
	x := &ruleIndex{did: "has changed the object"}
	if targets {
		x.did = "has named its targets"
	}
	for _, p := range policies {
		for _, r := range p.rules {
			if len(r.targets) > 0 == targets {
				x.rules = append(x.rules, r)
			}
		}
	}
	return x
}

// of returns the places of the rules that may match a kind, in evaluation order.
func (x *ruleIndex) of(kind string) []int {
	if known, ok := x.byKind.Load(kind); ok {
		return known.([]int)
	}
	var places []int
	for i, r := range x.rules {
		if slices.ContainsFunc(r.match.Kinds(), func(k selector.Kind) bool { return selector.MatchWildcard(k.Kind, kind) }) {
			places = append(places, i)
		}
	}
	x.byKind.Store(kind, places)
	return places
}

// visit runs the rules that may match an object, and hands over the steps of all. run also reports whether the rule did
// something, after which applyRules: One keeps the rest of its policy from running.
func (x *ruleIndex) visit(ctx context.Context, t *engine.Target, w *engine.World, sink engine.Sink, run func(*rule) ([]engine.Step, bool)) error {
	places := x.of(t.Key.Kind)
	for i := 0; i < len(x.rules); i++ {
		applied := x.rules[i]
		if _, mayMatch := slices.BinarySearch(places, i); !mayMatch {
			applied.skipKind(ctx, t, w, sink)
			continue
		}
		steps, done := run(applied)
		if err := ctx.Err(); err != nil {
			return err
		}
		for done && applied.policy.applyOne && i+1 < len(x.rules) && x.rules[i+1].policy == applied.policy {
			i++
			steps = append(steps, x.rules[i].skipped(t, applied, x.did))
		}
		for _, s := range steps {
			sink.Step(s)
		}
	}
	return nil
}

// skipped is the step of a rule that applyRules: One keeps from running, because another one did something.
func (r *rule) skipped(t *engine.Target, applied *rule, did string) engine.Step {
	step := engine.Step{Rule: r.ref, Outcome: engine.Skipped}
	if len(r.targets) > 0 {
		step.Trigger = t.Key
	}
	step.Err = &SkippedError{Reason: "applyRules is One, and rule " + applied.ref.Rule + " " + did}
	return step
}
