package admissionpolicy

import (
	"cmp"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// Describe describes each policy, once for each binding. The program is an
// engine.Describer.
func (p *program) Describe() []engine.Description {
	out := make([]engine.Description, 0, len(p.units))
	for i := range p.units {
		u := &p.units[i]
		d := engine.Description{Rule: u.rule(), Where: u.where(), Existing: engine.OnAdmission, Operations: u.constraints.Operations()}
		d.Matches, d.Requests = selectionsOf(u.constraints)
		d.Changes = cel.PathsOf(u.mutations)
		d.Asks = u.asks()
		for i := range d.Asks {
			if d.Asks[i].Of == engine.AskObjects {
				d.Params = append(d.Params, d.Asks[i].Objects)
			}
		}
		out = append(out, d)
	}
	return out
}

// where describes what else narrows the policy beside its selections: conditions, and
// its binding.
func (u *unit) where() []string {
	out := u.constraints.Where()
	for _, c := range u.conditions {
		out = append(out, fmt.Sprintf("matchCondition %q", c.Name))
	}
	if u.binding != nil && u.binding.resources != nil {
		for _, text := range u.binding.resources.Describe() {
			out = append(out, "by its binding, "+text)
		}
	}
	return out
}

// reviews is the path of access reviews of an API server.
const reviews = "/apis/authorization.k8s.io/v1/"

func (u *unit) asks() []engine.Ask {
	var out []engine.Ask
	if u.params != nil && u.binding != nil && u.binding.params != nil {
		ref := u.binding.params
		out = append(out, engine.Ask{Of: engine.AskObjects, What: "parameters of kind " + u.params.Kind, Objects: engine.Selection{
			Group: u.params.Group, Version: u.params.Version, Kind: u.params.Kind,
			Namespace: cmp.Or(ref.namespace, engine.Computed), Name: ref.name, Labels: ref.selector,
		}})
	}
	if u.asksUser {
		out = append(out, engine.AskRequestUser())
	}
	switch {
	case u.scope.Uses("serviceAccount()"):
		out = append(out, engine.Ask{Of: engine.AskAccess, What: "what a service account may do", Method: "POST", Path: reviews + "subjectaccessreviews"})
	case u.scope.Uses("authorizer"):
		out = append(out, engine.Ask{Of: engine.AskAccess, What: "what the user may do", Method: "POST", Path: reviews + "selfsubjectaccessreviews"})
	}
	return out
}
