package mutatingpolicy

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// effect is a rule with targets, bound to a trigger.
type effect struct {
	rule      *rule
	trigger   engine.Target
	operation engine.Operation
	created   bool // the trigger only triggers the rule as if it were created
	subjects  engine.Selection
	resource  schema.GroupVersionResource
	secret    bool // it read more of the trigger, or of answers, than metadata, and these hold values of Secrets
	listed    bool // resource rules name the subjects, and have to select each of them
}

// Effects evaluates the rules with targets up to the point where they name their
// subjects.
func (p *program) Effects(ctx context.Context, trigger engine.Target, w *engine.World, sink engine.Sink) ([]engine.Effect, error) {
	var out []engine.Effect
	for _, r := range p.rules {
		if r.policy.Targets == nil {
			continue
		}
		effects, step := r.propagate(ctx, trigger, w, sink)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if step != nil {
			sink.Step(*step)
		}
		for _, f := range effects {
			out = append(out, f)
		}
	}
	return out, nil
}

// propagate decides whether the trigger triggers the rule, if need be as if the
// trigger were created. It returns what the rule does, or the step of what kept
// it from doing anything.
func (r *rule) propagate(ctx context.Context, trigger engine.Target, w *engine.World, sink engine.Sink) ([]*effect, *engine.Step) {
	operation, open := simulated(trigger)
	e := newExecution(ctx, w)
	defer e.end()
	e.start(r, trigger, operation)
	effects, step := r.guarded(e, sink)
	if step == nil || !open || !r.asksOperation || step.Outcome != engine.Skipped {
		return effects, step
	}
	e.start(r, trigger, engine.OperationCreate)
	created, other := r.guarded(e, sink)
	if other != nil && other.Outcome == engine.Skipped {
		return nil, step
	}
	for _, f := range created {
		f.created = true
	}
	if other != nil {
		other.AsCreated = true
	}
	return created, other
}

// guarded makes a panic the failure of this one rule.
func (r *rule) guarded(e *execution, sink engine.Sink) (effects []*effect, step *engine.Step) {
	err := engine.Guard(func() error { effects, step = r.propagateAs(e, sink); return nil })
	if err != nil {
		failed := e.triggerStep(err)
		return nil, &failed
	}
	return effects, step
}

func (r *rule) propagateAs(e *execution, sink engine.Sink) ([]*effect, *engine.Step) {
	e.explain = sink.Wants(engine.Unchanged)
	result, err := e.match()
	if err == nil && !result.Applies() {
		step := e.notMatched(e.rule.constraints, result, sink)
		step.Trigger = e.trigger.Key
		return nil, &step
	}
	var effects []*effect
	if err == nil {
		effects, err = e.effects()
	}
	if err != nil {
		step := e.triggerStep(err)
		return nil, &step
	}
	if len(effects) == 0 {
		step := e.triggerStep(&skippedError{Reason: "the policy names no target"})
		return nil, &step
	}
	return effects, nil
}

// triggerStep returns a step of the trigger itself, which the rule does not change.
func (e *execution) triggerStep(err error) engine.Step {
	step := e.step(nil, err)
	step.Trigger = e.trigger.Key
	return step
}

// effects evaluates the conditions on the trigger and returns the effects on the targets.
func (e *execution) effects() ([]*effect, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	evaluation := e.rule.scope.Evaluate(e.ctx, e.input(), cel.MutationBudget())
	unmet, err := e.holds(evaluation, e.rule.conditions)
	switch {
	case err != nil:
		return nil, err
	case unmet != nil:
		return nil, unmet
	}
	effects, err := e.targets(evaluation)
	if err != nil {
		return nil, err
	}
	trigger, secret := *e.trigger, e.secrets()
	if !e.rule.asksRequest {
		// The content of the trigger is not needed again: free it.
		trigger.Object = &unstructured.Unstructured{Object: map[string]any{}}
		trigger.OldObject, trigger.Namespace = nil, nil
	}
	for _, f := range effects {
		f.rule, f.trigger, f.operation, f.secret = e.rule, trigger, e.operation, secret.Object || secret.Answers
	}
	return effects, nil
}

// Rule returns the rule that acts.
func (f *effect) Rule() engine.RuleRef { return f.rule.ref }

// Trigger returns the object that triggered it.
func (f *effect) Trigger() engine.ObjectKey { return f.trigger.Key }

// Subjects selects the objects to change.
func (f *effect) Subjects() engine.Selection { return f.subjects }

// Confidential reports whether a Secret may have decided that there is the effect, or named its subjects.
func (f *effect) Confidential() bool { return f.secret }

// Apply changes one subject. Expressions see it as object; the request is that of
// the trigger, and there is neither an old object nor a namespaceObject, as in
// Kyverno's background controller.
func (f *effect) Apply(ctx context.Context, subject engine.Target, w *engine.World, sink engine.Sink) (*unstructured.Unstructured, error) {
	e := newExecution(ctx, w)
	defer e.end()
	e.timed(f.rule)
	e.operation, e.resource, e.secret = f.operation, f.resource, f.secret
	e.subject, e.trigger, e.onTarget = subject, &f.trigger, true
	step := e.guarded(func() engine.Step { return f.apply(e, sink) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	step.AsCreated = f.created
	sink.Step(step)
	if step.Outcome == engine.Changed {
		return step.After, nil
	}
	return subject.Object, nil
}

func (f *effect) apply(e *execution, sink engine.Sink) engine.Step {
	e.explain = sink.Wants(engine.Unchanged)
	if e.subject.Object == nil {
		return e.step(nil, errors.New("the target does not exist"))
	}
	if e.filtered() {
		return e.notMatched(f.rule.policy.Targets, filteredOut(), sink)
	}
	if f.listed {
		constraints := f.constraints()
		result, err := e.matchConstraints(constraints, "")
		if err != nil {
			return e.step(nil, err)
		}
		if !result.Applies() {
			return e.notMatched(constraints, result, sink)
		}
	}
	object, err := e.mutate(f.rule.targetConditions)
	return e.step(object, err)
}

// constraints returns those of the targets, which say more than a selection can. A
// subresource has none of its object's labels: the selection has compared these.
func (f *effect) constraints() *match.Constraints {
	if f.subjects.Subresource != "" {
		return withoutLabels(f.rule.policy.Targets)
	}
	return f.rule.policy.Targets
}

// targets returns an effect for each target of the rule.
func (e *execution) targets(evaluation *cel.Evaluation) ([]*effect, error) {
	if e.rule.target != nil {
		return e.namedTargets(evaluation)
	}
	if e.world.Mapper == nil {
		return nil, &cel.UnsupportedError{Reason: "there is no cluster that knows which kinds the targets are of"}
	}
	var out []*effect
	for _, t := range targetsOf(e.rule.policy.Targets) {
		kind, err := e.world.Mapper.KindFor(t.resource)
		if t.wildcard() || err != nil || kind.Group != t.resource.Group || kind.Version != t.resource.Version {
			continue // as in Kyverno: an unknown resource has no objects
		}
		for _, name := range t.names {
			out = append(out, &effect{listed: true, resource: t.resource, subjects: engine.Selection{
				Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Subresource: t.subresource,
				Namespace: e.rule.policy.Namespace, Name: name, Labels: t.labels,
			}})
		}
	}
	return out, nil
}

// namedTargets returns the effects on the objects that an expression evaluates to: one, or
// those of a list.
func (e *execution) namedTargets(evaluation *cel.Evaluation) ([]*effect, error) {
	field := e.rule.policy.TargetField
	v, err := evaluation.Value(e.rule.target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	objects, err := objectsIn(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	if len(objects) > e.world.Limits.Elements {
		return nil, fmt.Errorf("%s: %w", field, &limit.Error{What: "targets", Max: e.world.Limits.Elements})
	}
	var out []*effect
	for _, u := range objects {
		key := engine.KeyOf(u)
		switch ns := e.rule.policy.Namespace; {
		case key.Kind == "" || key.Name == "":
			return nil, fmt.Errorf("%s: %w", field, errors.New("a target has no kind or no name"))
		case ns != "" && key.Namespace != ns:
			return nil, fmt.Errorf("%s: %w", field, fmt.Errorf("%s is not in namespace %s, which a %s cannot leave", key, ns, kindNamespacedPolicy))
		}
		resource := match.ResourceOf(&engine.Target{Key: key}, e.world)
		out = append(out, &effect{resource: resource, subjects: engine.Selection{
			Group: key.Group, Version: key.Version, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
			Subresource: subresourceOf(e.rule.policy.Targets, resource),
		}})
	}
	return out, nil
}
