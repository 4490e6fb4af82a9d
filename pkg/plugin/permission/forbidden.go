package permission

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// ForbiddenError is a server's refusal because of a missing permission.
type ForbiddenError struct {
	Need Need  // the permission; Why is empty
	Err  error // the server's response
}

// Error returns the server's message.
func (e *ForbiddenError) Error() string { return e.Err.Error() }

// Unwrap returns the server's response.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// Forbidden wraps the error of a refused request in a *ForbiddenError, which names the missing permission:
// the response has it only as prose. Path is the request's, without the query. Any other error is returned
// unchanged.
func Forbidden(err error, method, path string) error {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return err
	}
	p := engine.NewAPIPath(path)
	if p.Resource == "" {
		return &ForbiddenError{Need: Need{Verb: strings.ToLower(method), Path: p.Clean}, Err: err}
	}
	verb := verb(method, p)
	need := Need{Verb: verb, Group: p.Group, Resource: p.Resource, Namespace: p.Namespace, Name: p.Name}
	if details := status.Status().Details; need.Verb == "list" && details != nil {
		need.Name = details.Name // from a field selector for one object
	}
	if p.Subresource != "" {
		need.Resource += "/" + p.Subresource
	}
	return &ForbiddenError{Need: need, Err: err}
}

// verb returns the verb of a request for a resource, as authorizers call it.
func verb(method string, p engine.APIPath) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodGet && p.Name == "":
		return "list"
	}
	return strings.ToLower(method)
}

// Lacking collects the missing permissions of requests, in the order in which they were added.
type Lacking struct{ Needs []Need }

// Of adds the permissions of all refusals in an error, which may join several.
func (l *Lacking) Of(err error) {
	var several interface {
		error
		Unwrap() []error
	}
	var refused *ForbiddenError
	switch {
	case errors.As(err, &several):
		for _, part := range several.Unwrap() {
			l.Of(part)
		}
	case errors.As(err, &refused):
		l.Needs = append(l.Needs, refused.Need)
	}
}

// Hint returns a line for each missing rule of a role, with the first of its namespaces, and how to print
// all permissions of a run; empty if no permission is missing.
func (l *Lacking) Hint() string {
	byNamespace := inNamespaces(l.Needs)
	if len(byNamespace) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("hint: the refused requests need these rules of a role; the command rbac, with the same policies, types and names, and --for preview, explain or apply, prints all that a run needs:\n")
	type line struct{ rule, kind string }
	var lines []line
	in := map[line][]string{} // namespaces
	for _, role := range byNamespace {
		for _, rule := range role.Rules {
			l := line{rule.line(), role.kind()}
			if in[l] == nil {
				lines = append(lines, l)
			}
			in[l] = append(in[l], role.Namespace)
		}
	}
	for _, l := range lines {
		b.WriteString("  - " + l.rule + "  # " +
			Comment(strings.TrimSuffix(l.kind+" in "+engine.Few(in[l]), " in ")) + "\n")
	}
	return b.String()
}

// line returns the rule as one line of YAML.
func (r Rule) line() string {
	fields := make([]string, 0, len(r.fields()))
	for _, f := range r.fields() {
		fields = append(fields, f.name+": ["+texts(f.values)+"]")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
