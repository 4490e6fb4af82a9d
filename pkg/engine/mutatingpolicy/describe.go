package mutatingpolicy

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// Describe describes each rule. The program is an engine.Describer.
func (p *program) Describe() []engine.Description {
	out := make([]engine.Description, 0, len(p.rules))
	for _, r := range p.rules {
		out = append(out, r.describe())
	}
	return out
}

func (r *rule) describe() engine.Description {
	d := engine.Description{Rule: r.ref, Existing: engine.OnAdmission, Where: r.where(), Operations: r.constraints.Operations(), Asks: r.asks}
	d.Matches, d.Requests = engine.SplitRequests(selectionsOf(r.constraints, r.policy.Namespace))
	if r.ref.Rule != "" {
		d.From = r.ref
		d.From.Rule = ""
	}
	switch {
	case r.policy.Targets != nil:
		d.Existing = engine.ByTrigger
		d.Targets = selectionsOf(r.policy.Targets, r.policy.Namespace)
		if r.target != nil {
			d.Targets = []engine.Selection{{Group: "*", Kind: "*", Namespace: r.policy.Namespace}}
		}
	case r.policy.Existing:
		d.Existing = engine.InBackground
	}
	if r.asksUser {
		d.Asks = append(slices.Clip(d.Asks), engine.AskRequestUser())
	}
	d.Changes = cel.PathsOf(r.mutations)
	return d
}

// where describes what else narrows the rule beside its selections.
func (r *rule) where() []string {
	out := r.constraints.Where()
	for _, c := range r.conditions {
		out = append(out, fmt.Sprintf("matchCondition %q", c.Name))
	}
	for _, x := range r.exceptions {
		if !x.Partial() { // a partial one only allows values
			out = append(out, "unless PolicyException "+x.Name+" holds")
		}
	}
	return out
}
