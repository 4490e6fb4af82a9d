package kyverno

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// effect is one entry of a rule's targets, bound to a trigger.
type effect struct {
	rule      *rule
	target    *target
	trigger   *engine.Target // shared by all effects of a rule
	operation engine.Operation
	open      bool // the operation was left open: CREATE may be tried
	created   bool // the rule runs only as if the trigger were created
	subjects  engine.Selection

	confidential bool // as in engine.Step
}

// Effects runs the rules with targets up to the point where they name their
// subjects. A policy that applies one rule stops after the first that names any,
// since only applying it would tell whether it changes something.
func (p *program) Effects(ctx context.Context, trigger engine.Target, w *engine.World, sink engine.Sink) ([]engine.Effect, error) {
	var out []engine.Effect
	err := p.triggered.visit(ctx, &trigger, w, sink, func(r *rule) ([]engine.Step, bool) {
		effects, steps := r.propagate(ctx, trigger, w, sink)
		for _, f := range effects {
			out = append(out, f)
		}
		return steps, len(effects) > 0
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// propagate decides, as run does for other rules, whether the rule runs for
// the trigger, if need be as if the trigger were created.
func (r *rule) propagate(ctx context.Context, trigger engine.Target, w *engine.World, sink engine.Sink) (effects []*effect, steps []engine.Step) {
	operation, open := r.simulated(trigger)
	first := newExecution(ctx, w, r, trigger, operation)
	steps = first.eitherWay(open, func(e *execution) (steps []engine.Step) {
		effects, steps = r.propagateAs(e, sink)
		for _, f := range effects {
			f.open, f.created = open, e != first
		}
		return steps
	})
	return effects, steps
}

// propagateAs returns the effects, and the steps of what kept others from being.
// There is at least one of either. An entry that fails does not stop the others.
func (r *rule) propagateAs(e *execution, sink engine.Sink) (effects []*effect, steps []engine.Step) {
	defer func() { e.end() }()
	err := engine.Guard(func() error { effects, steps = r.name(e, sink); return nil })
	if err != nil {
		step := e.step(patchResult{}, err)
		step.Trigger = e.matched.Key
		return nil, []engine.Step{step}
	}
	return effects, steps
}

// name is what propagateAs guards.
func (r *rule) name(e *execution, sink engine.Sink) (effects []*effect, steps []engine.Step) {
	scope, stopped := r.admit(e, sink)
	if scope == nil {
		stopped.Trigger = e.matched.Key
		return nil, []engine.Step{stopped}
	}
	trigger := e.matched.Target
	if !r.asksTrigger {
		// The trigger's content is not needed again, so it need not be kept.
		trigger.Object = &unstructured.Unstructured{Object: map[string]any{}}
		trigger.OldObject, trigger.Namespace = nil, nil
	}
	for _, t := range r.targets {
		subjects, err := t.subjects(scope, e.world.Mapper)
		if err != nil {
			step := e.step(patchResult{}, err)
			step.Trigger = e.matched.Key
			steps = append(steps, step)
			continue
		}
		effects = append(effects, &effect{rule: r, target: t, trigger: &trigger, operation: e.matched.Operation, subjects: subjects})
	}
	for _, f := range effects {
		f.confidential = e.confidential || e.scope.Confidential()
	}
	return effects, steps
}

// Rule is the rule that acts.
func (f *effect) Rule() engine.RuleRef { return f.rule.ref }

// Trigger is the object that the rule matched.
func (f *effect) Trigger() engine.ObjectKey { return f.trigger.Key }

// Subjects names the objects to change.
func (f *effect) Subjects() engine.Selection { return f.subjects }

// Confidential reports whether a Secret may have decided that there is the effect, or named its subjects.
func (f *effect) Confidential() bool { return f.confidential }

// Apply changes one subject. Variables see the trigger as request.object and the
// subject as target. A precondition of the target that asks for the operation is
// judged, like the rule's own, for UPDATE and then for CREATE.
func (f *effect) Apply(ctx context.Context, subject engine.Target, w *engine.World, sink engine.Sink) (*unstructured.Unstructured, error) {
	first := newExecution(ctx, w, f.rule, *f.trigger, f.operation)
	first.onTarget, first.subject, first.confidential = true, &subject, f.confidential
	step := first.eitherWay(f.open && !f.created, func(e *execution) []engine.Step {
		defer func() { e.end() }()
		e.explain(sink)
		return []engine.Step{e.guarded(func() engine.Step { return f.apply(e) })}
	})[0]
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	step.AsCreated = step.AsCreated || f.created
	sink.Step(step)
	if step.Outcome == engine.Changed {
		return step.After, nil
	}
	return subject.Object, nil
}

func (f *effect) apply(e *execution) engine.Step {
	if e.subject.Object == nil {
		return e.step(patchResult{}, e.failed(f.target.field, errors.New("the target does not exist")))
	}
	s := e.begin()
	s.Set("target", e.subject.Object.Object)
	e.define(s, f.target.context)
	if err := e.meets(f.target.preconditions, s, f.target.field+".preconditions"); err != nil {
		return e.step(patchResult{}, err)
	}
	out, err := f.rule.mutation.mutate(e, s, e.patched())
	out.NotIdempotent = cmp.Or(out.NotIdempotent, f.target.context.NotIdempotent())
	return e.step(out, err)
}
