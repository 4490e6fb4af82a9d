package permission

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// ForbiddenError is a server's refusal for want of a permission.
type ForbiddenError struct {
	Need Need  // the permission; Why is empty
	Err  error // the server's answer
}

// Error is the server's answer.
func (e *ForbiddenError) Error() string { return e.Err.Error() }

// Unwrap gives the server's answer.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// Forbidden wraps the error of a refused request in a *ForbiddenError, which names the lacking
// permission: the server's answer has it only as prose. Path is that of the request, without its
// query. Any other error is returned as it is.
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
		need.Name = details.Name // of a field selector, which names one object
	}
	if p.Subresource != "" {
		need.Resource += "/" + p.Subresource
	}
	return &ForbiddenError{Need: need, Err: err}
}

// verb is what an authorizer calls a request for a resource.
func verb(method string, p engine.APIPath) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodGet && p.Name == "":
		return "list"
	}
	return strings.ToLower(method)
}

// Lacking collects the permissions that requests lacked, in the order in which they were added.
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

// Hint returns a line for each lacking rule of a role, with the first namespaces of many, and how to print
// all that a run needs; empty if no permission is lacking.
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

// line is the rule as one line of YAML.
func (r Rule) line() string {
	fields := make([]string, 0, len(r.fields()))
	for _, f := range r.fields() {
		fields = append(fields, f.name+": ["+texts(f.values)+"]")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
