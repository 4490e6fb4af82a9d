package mutatingpolicy

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// effect is a rule with targets, bound to a trigger.
type effect struct {
	engine.Effect
	rule      *rule
	trigger   engine.Target
	operation engine.Operation
	resource  schema.GroupVersionResource
	listed    bool // resource rules name the subjects and have to match each
}

// Effects evaluates the rules with targets until they name their subjects.
func (p *program) Effects(
	ctx context.Context, trigger engine.Target, w *engine.World, sink engine.Sink,
) ([]engine.Effect, error) {
	var out []engine.Effect
	for _, r := range p.rules {
		if r.policy.targets == nil {
			continue
		}
		var effects []*effect
		step := r.simulate(ctx, trigger, w, sink, func(e *execution) (_ map[string]any, err error) {
			effects, err = e.effects()
			return nil, err
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(effects) == 0 {
			sink.Step(step)
		}
		for _, f := range effects {
			out = append(out, f.Effect)
		}
	}
	return out, nil
}

// effects evaluates the conditions on the trigger and returns the effects on the targets.
func (e *execution) effects() ([]*effect, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	evaluation := e.rule.Scope.Evaluate(e.ctx, e.input(), cel.MutationBudget)
	err := evaluation.Holds(e.rule.Conditions)
	if err == nil && e.rule.target != nil {
		// like Kyverno's background controller (getTargetsFromExpression in pkg/background/mpol/processor.go)
		in := e.input()
		in.Object, in.OldObject, in.Namespace = e.subject.Object.Object, nil, nil
		evaluation = e.rule.Scope.Evaluate(e.ctx, in, cel.MutationBudget)
		if err = evaluation.Holds(e.rule.Conditions); err != nil {
			err = fmt.Errorf("%w (Kyverno evaluates the conditions a second time when it looks for targets: "+
				"object is then what exists, or was deleted, and oldObject and namespaceObject are null; request.oldObject is the same both times)", err)
		}
	}
	if err != nil {
		return nil, err
	}
	effects, err := e.targets(evaluation)
	if err == nil && len(effects) == 0 {
		err = &engine.SkippedError{Reason: "the policy names no target"}
	}
	trigger, secret := *e.trigger, e.secrets()
	if !e.rule.Scope.Uses("request") {
		// Let the trigger's content be freed.
		trigger.Object = &unstructured.Unstructured{Object: map[string]any{}}
		trigger.OldObject, trigger.Namespace = nil, nil
	}
	for _, f := range effects {
		f.rule, f.trigger, f.operation = e.rule, trigger, e.operation
		f.Rule, f.Trigger, f.Apply = e.rule.Ref, trigger.Key, f.apply
		f.Confidential = secret.Object || secret.Answers
	}
	return effects, err
}

// apply changes one subject. Expressions see it as object; the request is the trigger's, and there is neither
// an old object nor a namespaceObject, as in Kyverno's background controller.
func (f *effect) apply(
	ctx context.Context, subject engine.Target, w *engine.World, sink engine.Sink,
) engine.Step {
	e, done := f.rule.start(ctx, subject, w, sink, f.operation)
	defer done()
	e.resource, e.secret, e.trigger, e.onTarget = f.resource, f.Confidential, &f.trigger, true
	if e.subject.Object == nil {
		return e.step(nil, errors.New("the target does not exist"))
	}
	if e.filtered() {
		return e.notMatched(cel.NotApplicable(filteredOut))
	}
	if f.listed {
		constraints := *f.rule.policy.targets // more than a selection can express
		// a subresource lacks its object's labels, which the selection has compared
		if f.Subjects.Subresource != "" {
			constraints.Objects = nil
		}
		m, err := e.matchConstraints(&constraints, "")
		if err != nil {
			return e.step(nil, err)
		}
		if !m.Applies() {
			return e.notMatched(m)
		}
	}
	object, err := e.mutate(f.rule.targetConditions)
	return e.step(object, err)
}

// targets returns an effect for each target of the rule.
func (e *execution) targets(evaluation *cel.Evaluation) ([]*effect, error) {
	if e.rule.target != nil {
		return e.namedTargets(evaluation)
	}
	if e.world.Mapper == nil {
		return nil, &engine.UnsupportedError{Err: errors.New("there is no cluster that knows which kinds the targets are of")}
	}
	var out []*effect
	for _, s := range e.rule.policy.targets.Selections(e.rule.policy.Namespace) {
		resource := schema.GroupVersionResource{Group: s.Group, Version: s.Version, Resource: s.Resource}
		kind, err := e.world.Mapper.KindFor(resource)
		if isWildcard(s) || err != nil || kind.GroupVersion() != resource.GroupVersion() {
			continue // as in Kyverno: an unknown resource has no objects
		}
		s.Kind, s.Resource = kind.Kind, ""
		if s.Labels == nil { // constraints only filter: an object that they name need not exist
			s.Labels = &metav1.LabelSelector{}
		}
		out = append(out, &effect{Effect: engine.Effect{Subjects: s}, listed: true, resource: resource})
	}
	return out, nil
}

// namedTargets returns the effects on the object, or list of objects, that an expression returns.
func (e *execution) namedTargets(evaluation *cel.Evaluation) ([]*effect, error) {
	field := e.rule.target.Path
	v, err := evaluation.Value(e.rule.target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	objects, err := objectsIn(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	if len(objects) > limit.Elements {
		return nil, fmt.Errorf("%s: %w", field, &limit.Error{What: "targets", Max: limit.Elements})
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
		resource := (&engine.Target{Key: key}).Resource(e.world)
		out = append(out, &effect{resource: resource, Effect: engine.Effect{Subjects: engine.Selection{
			Group: key.Group, Version: key.Version, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
			Subresource: subresourceOf(e.rule.policy.targets, resource),
		}}})
	}
	return out, nil
}
