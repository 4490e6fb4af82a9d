package engine

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// APIPath is a parsed path of an API server. Resource is empty for a path outside of resources, such as
// /version or /apis/apps.
type APIPath struct {
	Clean                     string // without the query, "." and ".."; starts with "/"
	Group, Version            string
	Resource, Namespace, Name string
	Subresource               string // only its first segment: "proxy" of .../proxy/healthz
	Query                     url.Values
	watches, legacy           bool
}

// ParseAPIPath parses the path, with an optional query, that follows a server's address. A path that names a
// server is an error, so that no request can go to another one.
func ParseAPIPath(text string) (APIPath, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return APIPath{}, fmt.Errorf("%q is no path: %w", text, errors.Unwrap(err))
	case u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "":
		return APIPath{}, fmt.Errorf("%q names a server: only paths of the cluster's own can be read", text)
	case u.Path == "":
		return APIPath{}, errors.New("the path is empty")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return APIPath{}, fmt.Errorf("%q has a broken query: %w", text, err)
	}
	p := NewAPIPath(u.Path)
	p.Query = query
	return p, nil
}

// NewAPIPath parses a path that is already decoded and has no query.
func NewAPIPath(decoded string) APIPath {
	p := APIPath{Clean: path.Clean("/" + decoded)}
	p.readResource(strings.Split(strings.Trim(p.Clean, "/"), "/"))
	return p
}

// readResource parses a path as the server does (k8s.io/apiserver/pkg/endpoints/request/requestinfo.go).
func (p *APIPath) readResource(segments []string) {
	switch {
	case segments[0] == "api" && len(segments) > 1:
		p.Version, segments = segments[1], segments[2:]
	case segments[0] == "apis" && len(segments) > 2:
		p.Group, p.Version, segments = segments[1], segments[2], segments[3:]
	case segments[0] == "apis" && len(segments) > 1:
		p.Group = segments[1]
		return
	default:
		return
	}
	if len(segments) > 1 && slices.Contains([]string{"watch", "proxy"}, segments[0]) {
		p.watches, p.legacy = segments[0] == "watch", segments[0] == "proxy"
		segments = segments[1:]
	}
	if len(segments) > 2 && segments[0] == "namespaces" &&
		!slices.Contains([]string{"status", "finalize"}, segments[2]) {
		p.Namespace, segments = segments[1], segments[2:]
	}
	for i, part := range []*string{&p.Resource, &p.Name, &p.Subresource} {
		if i < len(segments) {
			*part = segments[i]
		}
	}
}

// String returns the path with its query, sorted by name. It parses to the same path.
func (p APIPath) String() string {
	u := url.URL{Path: p.Clean, RawQuery: p.Query.Encode()}
	return u.RequestURI()
}

// Refusal returns why a policy may not make a request, or "" if it may.
func (p APIPath) Refusal(method string) string {
	switch {
	case p.HasSideEffects():
		return "it could act, or hand out credentials: exec, attach, portforward, proxy and token paths are closed to policies"
	case p.Subresource == "log" || strings.HasPrefix(p.Clean+"/", "/logs/"):
		return "logs are closed to policies"
	case method == "GET" && (p.watches || isSet(p.Query["watch"]) || isSet(p.Query["follow"])):
		return "it would not end: policies cannot watch"
	case method == "GET":
		return ""
	case method == "POST" && p.IsReview():
		return ""
	case method == "POST":
		return "it could write: policies may only POST reviews of authorization.k8s.io, and of authentication.k8s.io without a token"
	default:
		return "policies may only GET, and POST reviews"
	}
}

func isSet(values []string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return v != "false" && v != "0" })
}

// HasSideEffects reports whether even a GET or a dry run has an effect: it runs a command in a container,
// opens a tunnel or issues a token.
func (p APIPath) HasSideEffects() bool {
	return p.legacy ||
		slices.Contains([]string{"exec", "attach", "portforward", "proxy", "token"}, p.Subresource)
}

// IsReview reports whether a POST to the path only asks for a user's identity or permissions. A TokenReview
// does not count: it carries a credential.
func (p APIPath) IsReview() bool {
	if p.Name != "" || p.watches {
		return false
	}
	switch p.Group {
	case "authorization.k8s.io":
		return slices.Contains([]string{
			"subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews",
		}, p.Resource)
	case "authentication.k8s.io":
		return p.Resource == "selfsubjectreviews"
	}
	return false
}
