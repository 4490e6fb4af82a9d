package mutatingpolicy

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// program is all rules, by policy. It is an engine.Propagator.
type program struct {
	rules      []*rule
	refs       []engine.RuleRef
	selections []engine.Selection
	propagates bool
}

func newProgram(rules []*rule) *program {
	p := &program{rules: rules, refs: slices.Grow([]engine.RuleRef(nil), len(rules))}
	var selections engine.SelectionSet
	for _, r := range rules {
		p.refs = append(p.refs, r.ref)
		p.propagates = p.propagates || r.policy.Targets != nil
		selections.Add(selectionsOf(r.constraints, r.policy.Namespace)...)
	}
	p.selections = selections.All
	return p
}

// Rules lists the rules by policy, derived ones last.
func (p *program) Rules() []engine.RuleRef { return p.refs }

// Selections names what the rules match.
func (p *program) Selections() []engine.Selection { return p.selections }

// Propagates reports whether there is a rule with targets.
func (p *program) Propagates() bool { return p.propagates }

// Evaluate runs the rules without targets; in the second round those whose
// reinvocationPolicy asks for it. Each sees the object as the rule before it left
// it; one that fails leaves it as it was. An object that one of them would have
// denied is changed by none.
func (p *program) Evaluate(ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink) (*unstructured.Unstructured, error) {
	steps := make([]engine.Step, 0, len(p.rules))
	now, denied := t, ""
	e := newExecution(ctx, w)
	defer e.end()
	for _, r := range p.rules {
		if r.policy.Targets != nil || (t.Request.Reinvocation && !r.policy.Reinvoked) {
			continue
		}
		step := e.guarded(func() engine.Step { return e.run(r, now, sink) })
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch step.Outcome {
		case engine.Changed:
			now = now.With(step.After)
			now.Tainted = now.Tainted || step.Confidential
		case engine.Denied:
			denied = cmp.Or(denied, r.ref.String())
		}
		steps = append(steps, step)
	}
	engine.HandOver(sink, steps, denied)
	if denied != "" {
		return t.Object, nil
	}
	return now.Object, nil
}
