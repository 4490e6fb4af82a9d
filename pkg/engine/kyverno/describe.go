package kyverno

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/contextentry"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
)

// describe describes the rule as its document has it.
func (r *rule) describe() engine.Description {
	d := engine.Description{
		Rule: r.ref, Matches: r.match.Selections(r.policy.namespace), Requests: r.match.Requests(r.policy.namespace), Existing: engine.OnAdmission,
		Where: r.where(), Operations: r.match.Operations(), Gap: r.gap,
	}
	if r.written != r.ref.Rule {
		d.From = r.ref
		d.From.Rule = r.written
	}
	for _, t := range r.targets {
		d.Existing = engine.ByTrigger
		d.Targets = append(d.Targets, t.described())
	}
	d.Changes = patchFields(r.mutate)
	for _, entries := range r.contexts() {
		d.Asks = append(d.Asks, entries.Asks(r.policy.inputs.globals)...)
	}
	if r.match.AsksRoles() || r.exclude.AsksRoles() {
		for _, s := range match.Bindings() {
			d.Asks = append(d.Asks, engine.Ask{Of: engine.AskObjects, What: "the roles of the requesting user", Objects: s})
		}
	}
	return d
}

// where describes what narrows the rule beside its selections.
func (r *rule) where() []string {
	out := append(r.match.Where(r.policy.namespace), r.exclude.Unless()...)
	if r.preconditions != nil {
		out = append(out, "preconditions hold")
	}
	for _, x := range r.exceptions {
		out = append(out, "unless PolicyException "+x.name+" holds")
	}
	return out
}

// contexts are the context entries of the rule, its targets and its loops.
func (r *rule) contexts() []contextentry.Entries {
	out := []contextentry.Entries{r.context}
	for _, t := range r.targets {
		out = append(out, t.context)
	}
	return append(out, r.mutation.contexts()...)
}
