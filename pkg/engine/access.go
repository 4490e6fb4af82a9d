package engine

import "context"

// Authorizer decides what a user may do, as the API server would. An error means
// that there is no decision, and says why.
type Authorizer interface {
	Authorize(context.Context, AccessRequest) (AccessDecision, error)
}

// AccessRequest is one question to an Authorizer: about Path if that is set, else
// about a resource, of which an empty part stands for all.
type AccessRequest struct {
	// User is the one who asks: the simulated user, or a service account that a
	// policy names; empty for the user whose credentials the run has.
	User UserInfo
	Verb string
	// Path is that of a request that is for no resource, such as "/healthz".
	Path                                          string
	Group, Resource, Subresource, Namespace, Name string
	// FieldSelector and LabelSelector narrow a list to a part, in kubectl's syntax.
	FieldSelector, LabelSelector string
}

// AccessDecision is an Authorizer's answer. Reason is the server's, if it gave one,
// and Error what went wrong while it decided: policies may read both.
type AccessDecision struct {
	Allowed bool
	Reason  string
	Error   string
}
