package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// RequestUserLint is the warning about a policy whose expressions read request.userInfo.
const RequestUserLint = "what it does depends on who changes the object (request.userInfo): --request-user says who; without it, the cluster says who you are"

// SelfSubjectReviewPath is the path at which an API server identifies the user. Every user may ask.
const SelfSubjectReviewPath = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// AskRequestUser returns the question that a policy asks by reading request.userInfo.
func AskRequestUser() Ask {
	return Ask{Of: AskAccess, What: "who the user is", Method: "POST", Path: SelfSubjectReviewPath}
}

// UnknownUserError is a failure of a policy because the user of the request is unknown.
type UnknownUserError struct {
	Why error // why the user is not known
	Err error // the failure
}

// Error says how to name a user.
func (e *UnknownUserError) Error() string {
	why := ""
	var offline *UnansweredError
	if !errors.As(e.Why, &offline) && !errors.Is(e.Why, errNoCluster) {
		why = fmt.Sprintf(" (who you are cannot be read: %v)", e.Why)
	}
	return fmt.Sprintf("the policy uses request user information, which --request-user gives%s: %v", why, e.Err)
}

// Unwrap returns the failure.
func (e *UnknownUserError) Unwrap() error { return e.Err }

var errNoCluster = errors.New("there is no cluster to ask")

// RequestUser returns the user of a request: the user that it names, or else the user of this program,
// according to the API server, which is asked once in a run. The error says why the user is unknown.
func RequestUser(ctx context.Context, r Request, w *World) (authenticationv1.UserInfo, error) {
	if !r.User.Empty() {
		return authenticationv1.UserInfo{Username: r.User.Username, Groups: r.User.Groups}, nil
	}
	if w == nil || w.Raw == nil {
		return authenticationv1.UserInfo{}, errNoCluster
	}
	type question struct{}
	return Once(ctx, w, question{},
		func(w *World) (authenticationv1.UserInfo, error) { return review(ctx, w.Raw) })
}

func review(ctx context.Context, server RawReader) (authenticationv1.UserInfo, error) {
	question := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{
		APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview",
	}}
	body, err := json.Marshal(question)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	answer, err := server.Raw(ctx, "POST", SelfSubjectReviewPath, body)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	var reviewed authenticationv1.SelfSubjectReview
	if err := json.Unmarshal(answer, &reviewed); err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("the answer cannot be read: %w", err)
	}
	if reviewed.Status.UserInfo.Username == "" {
		return authenticationv1.UserInfo{}, errors.New("the answer names no user")
	}
	return reviewed.Status.UserInfo, nil
}

// UserInfoFields returns request.userInfo for expressions. As on a server, empty fields are left out.
func UserInfoFields(u *authenticationv1.UserInfo) map[string]any {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(u)
	if err != nil { // it has only strings
		return map[string]any{}
	}
	return out
}
