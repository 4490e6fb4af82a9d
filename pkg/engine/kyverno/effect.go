package kyverno

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// effect is one entry of a rule's targets, bound to a trigger.
type effect struct {
	rule         *rule
	trigger      engine.Target
	operation    engine.Operation
	confidential bool // as in engine.Step
	target       *target
}

// Effects runs the rules with targets until they name their subjects. A policy that applies one rule stops
// after the first that names any, since only applying it would tell whether it changes something.
func (p *program) Effects(ctx context.Context, trigger engine.Target, w *engine.World,
	sink engine.Sink,
) ([]engine.Effect, error) {
	var out []engine.Effect
	err := p.visit(ctx, &trigger, sink, true, func(r *rule) bool {
		before := len(out)
		step := r.run(ctx, &trigger, w, sink, func(e *execution, s *variables.Scope) engine.Step {
			out = append(out, e.propagate(s)...)
			return engine.Step{} // the effects have their own
		})
		if step.Outcome != "" {
			sink.Step(step)
		}
		return len(out) > before
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// propagate returns the effects of an admitted rule, and reports the entries that have none. An entry that
// fails does not stop the others.
func (e *execution) propagate(s *variables.Scope) (effects []engine.Effect) {
	trigger := *e.matched.Target
	if !e.rule.asksTrigger {
		// Let the trigger's content be freed.
		trigger.Object = &unstructured.Unstructured{Object: map[string]any{}}
		trigger.OldObject, trigger.Namespace = nil, nil
	}
	for _, t := range e.rule.targets {
		subjects, err := t.subjects(s, e.world.Mapper)
		if err != nil {
			e.sink.Step(e.ended(patchResult{}, err))
			continue
		}
		f := &effect{e.rule, trigger, e.matched.Operation, e.confidential || s.Confidential(), t}
		effects = append(effects,
			engine.Effect{
				Rule: e.rule.ref, Trigger: trigger.Key, Subjects: subjects, Confidential: f.confidential,
				Apply: f.apply,
			})
	}
	return effects
}

// apply changes one subject. Variables see the trigger as request.object and the subject as target. A panic
// fails only this rule.
func (f *effect) apply(ctx context.Context, subject engine.Target, w *engine.World,
	sink engine.Sink,
) (step engine.Step) {
	e := newExecution(ctx, w, f.rule, &f.trigger, sink)
	defer func() { e.end() }()
	e.matched.Operation = f.operation
	e.onTarget, e.subject, e.confidential = true, &subject, f.confidential
	if err := engine.Guard(func() error { step = e.ended(f.patched(e)); return nil }); err != nil {
		return e.ended(patchResult{}, err)
	}
	return step
}

func (f *effect) patched(e *execution) (patchResult, error) {
	if e.subject.Object == nil {
		return patchResult{}, &RuleError{f.target.field, errors.New("the target does not exist")}
	}
	s := e.begin()
	s.Set("target", e.subject.Object.Object)
	e.define(s, f.target.context)
	if err := e.meets(f.target.preconditions, s, f.target.field+".preconditions"); err != nil {
		return patchResult{}, err
	}
	out, err := f.rule.mutation.mutate(e, s, e.subject.Object.Object, e.why)
	out.NotIdempotent = cmp.Or(out.NotIdempotent, f.target.context.NotIdempotent())
	return out, err
}
