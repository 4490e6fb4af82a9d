package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Authorizer asks an API server, each question once. It is safe for concurrent use.
type Authorizer struct {
	server engine.RawReader
	memo   engine.Memo
}

var _ engine.Authorizer = (*Authorizer)(nil)

// NewAuthorizer makes an Authorizer that sends its reviews through server.
func NewAuthorizer(server engine.RawReader) *Authorizer { return &Authorizer{server: server} }

// Authorize asks with a SelfSubjectAccessReview about the user of this run, and with a SubjectAccessReview
// about another one. Its error means that there is no answer; errors of the server's own authorizers are part
// of the answer.
func (a *Authorizer) Authorize(ctx context.Context, r engine.AccessRequest) (engine.AccessDecision, error) {
	resource, body, err := review(r)
	if err != nil {
		return engine.AccessDecision{}, err
	}
	type question struct{ resource, body string }
	answer, err := a.memo.Do(ctx, question{resource, string(body)}, func(ctx context.Context) (any, error) {
		return a.ask(ctx, resource, body)
	})
	if apierrors.IsForbidden(err) {
		whom := "you"
		if r.User.Username != "" {
			whom = fmt.Sprintf("user %q", r.User.Username)
		}
		return engine.AccessDecision{}, fmt.Errorf("asking what %s may do needs the permission to create %s.%s: %w", whom, resource, authorizationv1.GroupName, err)
	}
	if err != nil {
		return engine.AccessDecision{}, fmt.Errorf("asking with %s: %w", resource, err)
	}
	return answer.(engine.AccessDecision), nil
}

func (a *Authorizer) ask(ctx context.Context, resource string, body []byte) (engine.AccessDecision, error) {
	answer, err := a.server.Raw(ctx, http.MethodPost, "/apis/"+authorizationv1.SchemeGroupVersion.String()+"/"+
		resource, body)
	if err != nil {
		return engine.AccessDecision{}, err
	}
	var reviewed authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(answer, &reviewed); err != nil {
		return engine.AccessDecision{}, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return engine.AccessDecision{
		Allowed: reviewed.Status.Allowed, Reason: reviewed.Status.Reason, Error: reviewed.Status.EvaluationError,
	}, nil
}

// review returns a request body and its resource. Both kinds of review have the same fields, but a review of
// the run's own user names no user.
func review(r engine.AccessRequest) (resource string, body []byte, err error) {
	resource, kind := "subjectaccessreviews", "SubjectAccessReview"
	if r.User.Empty() {
		resource, kind = "selfsubjectaccessreviews", "SelfSubjectAccessReview" // which everyone may create
	}
	spec := authorizationv1.SubjectAccessReviewSpec{User: r.User.Username, Groups: r.User.Groups}
	if r.Path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: r.Path, Verb: r.Verb}
	} else {
		on := &authorizationv1.ResourceAttributes{
			Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource,
			Namespace: r.Namespace, Name: r.Name,
		}
		if r.FieldSelector != "" {
			on.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: r.FieldSelector}
		}
		if r.LabelSelector != "" {
			on.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: r.LabelSelector}
		}
		spec.ResourceAttributes = on
	}
	body, err = json.Marshal(authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: kind}, Spec: spec,
	})
	return resource, body, err
}
