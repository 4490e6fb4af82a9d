package mutatingpolicy

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy/library"
)

func (r *rule) describe() engine.Description {
	d := r.Policy.Describe()
	d.Asks = library.Asks(library.Asking{Scope: r.Scope, Namespace: r.policy.Namespace, Entries: r.entries})
	d.Matches, d.Requests = engine.SplitRequests(selectionsOf(r.Constraints, r.policy.Namespace))
	for _, x := range r.exceptions {
		if !x.Partial() { // a partial one only allows values
			d.Where = append(d.Where, "unless PolicyException "+x.Name+" holds")
		}
	}
	if r.Ref.Rule != "" {
		d.From = r.policy.Ref
	}
	switch {
	case r.policy.targets != nil:
		d.Existing = engine.ByTrigger
		d.Targets = selectionsOf(r.policy.targets, r.policy.Namespace)
		if r.target != nil {
			d.Targets = []engine.Selection{{Group: "*", Kind: "*", Namespace: r.policy.Namespace}}
		}
	case r.policy.existing:
		d.Existing = engine.InBackground
	}
	if r.AsksUser {
		d.Asks = append(d.Asks, engine.AskRequestUser())
	}
	return d
}
