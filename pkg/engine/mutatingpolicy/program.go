package mutatingpolicy

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// program is all rules, by policy, derived ones last. It is an engine.Propagator.
type program struct {
	engine.Descriptions
	rules []*rule
}

// Selections names what the rules match, requests to subresources as well.
func (p *program) Selections() []engine.Selection {
	var out engine.SelectionSet
	for _, r := range p.rules {
		out.Add(selectionsOf(r.Constraints, r.policy.Namespace)...)
	}
	return out.All
}

// Evaluate runs the rules without targets; in the second round those whose
// reinvocationPolicy asks for it. Each sees the object as the rule before it left
// it; one that fails leaves it as it was. An object that one of them would have
// denied is changed by none.
func (p *program) Evaluate(ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink) (*unstructured.Unstructured, error) {
	steps := make([]engine.Step, 0, len(p.rules))
	now, denied := t, ""
	for _, r := range p.rules {
		if r.policy.targets != nil || (t.Request.Reinvocation && !r.Reinvoked) {
			continue
		}
		step := r.simulate(ctx, now, w, sink, func(e *execution) (map[string]any, error) {
			conditions := r.Conditions
			if r.policy.existing {
				conditions = append(slices.Clip(conditions), r.targetConditions...)
			}
			return e.mutate(conditions)
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch step.Outcome {
		case engine.Changed:
			now = now.With(step.After)
			now.Tainted = now.Tainted || step.Confidential
		case engine.Denied:
			denied = cmp.Or(denied, r.Ref.String())
		}
		steps = append(steps, step)
	}
	engine.HandOver(sink, steps, denied)
	if denied != "" {
		return t.Object, nil
	}
	return now.Object, nil
}
