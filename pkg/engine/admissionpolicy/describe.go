package admissionpolicy

import (
	"cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// describe describes the policy. Its binding narrows what it matches when it is evaluated.
func (u *unit) describe() engine.Description {
	d := u.Policy.Describe()
	d.Rule = u.rule()
	d.Matches, d.Requests = engine.SplitRequests(u.Constraints.Selections("")) // no live object stands for a request to a subresource
	if u.binding != nil && u.binding.resources != nil {
		for _, text := range u.binding.resources.Describe() {
			d.Where = append(d.Where, "by its binding, "+text)
		}
	}
	d.Asks = u.asks()
	for i := range d.Asks {
		if d.Asks[i].Of == engine.AskObjects {
			d.Params = append(d.Params, d.Asks[i].Objects)
		}
	}
	return d
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
	if u.AsksUser {
		out = append(out, engine.AskRequestUser())
	}
	switch {
	case u.Scope.Uses("serviceAccount()"):
		out = append(out, engine.Ask{Of: engine.AskAccess, What: "what a service account may do", Method: "POST", Path: reviews + "subjectaccessreviews"})
	case u.Scope.Uses("authorizer"):
		out = append(out, engine.Ask{Of: engine.AskAccess, What: "what the user may do", Method: "POST", Path: reviews + "selfsubjectaccessreviews"})
	}
	return out
}
