package cel

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// access passes the questions of Kubernetes' authorizer library to the Authorizer of an
// evaluation.
type access struct{ evaluation *Evaluation }

var _ authorizer.UnconditionalAuthorizer = access{}

// Authorize asks the Authorizer; the library passes no context of its own. An error of
// the server's decision is part of the answer that the expression sees. Where there is
// no answer, the evaluation as a whole fails: an expression would take it for a no.
func (a access) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	r, err := accessRequest(attributes)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	d, err := a.evaluation.input.Access.Authorize(a.evaluation.ctx, r)
	if err != nil {
		a.evaluation.missing = &UnsupportedError{Reason: err.Error(), Err: err}
		return authorizer.DecisionNoOpinion, "", err
	}
	if d.Error != "" {
		err = errors.New(d.Error)
	}
	if d.Allowed {
		return authorizer.DecisionAllow, d.Reason, err
	}
	return authorizer.DecisionNoOpinion, d.Reason, err
}

func accessRequest(attributes authorizer.Attributes) (engine.AccessRequest, error) {
	r := engine.AccessRequest{Verb: attributes.GetVerb()}
	if u := attributes.GetUser(); u != nil {
		r.User = engine.UserInfo{Username: u.GetName(), Groups: u.GetGroups()}
	}
	if !attributes.IsResourceRequest() {
		r.Path = attributes.GetPath()
		return r, nil
	}
	r.Group, r.Resource, r.Subresource = attributes.GetAPIGroup(), attributes.GetResource(), attributes.GetSubresource()
	r.Namespace, r.Name = attributes.GetNamespace(), attributes.GetName()
	onFields, err := attributes.GetFieldSelector()
	if err != nil {
		return r, err
	}
	onLabels, err := attributes.GetLabelSelector()
	if err != nil {
		return r, err
	}
	r.FieldSelector, r.LabelSelector = fieldText(onFields), labels.NewSelector().Add(onLabels...).String()
	return r, nil
}

func fieldText(requirements fields.Requirements) string {
	var all []string
	for _, r := range requirements {
		all = append(all, r.Field+string(r.Operator)+fields.EscapeValue(r.Value))
	}
	return strings.Join(all, ",")
}

func userOf(u engine.UserInfo) user.Info {
	return &user.DefaultInfo{Name: u.Username, Groups: u.Groups}
}
