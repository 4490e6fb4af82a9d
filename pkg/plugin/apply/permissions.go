package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
)

// writeVerb is the verb of every write of this program.
const writeVerb = "patch"

// Resource is what is to be patched.
type Resource struct{ Group, Resource, Subresource string }

// String is "deployments.apps/scale", as kubectl auth can-i takes it.
func (r Resource) String() string {
	text := r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	return text
}

// RequiredPermission is the permission to write one object.
type RequiredPermission struct {
	Resource
	Namespace, Name string
}

// MissingPermission is a permission that the user does not have.
type MissingPermission struct {
	Resource
	Namespace string
	// Names are the objects; the permission is missing for all of them.
	Names []string
}

// Forbidden is the error of a write without the permission.
func (m *MissingPermission) Forbidden() *rbac.ForbiddenError {
	need := rbac.Need{Verb: writeVerb, Group: m.Group, Resource: m.Resource.Resource, Namespace: m.Namespace}
	if m.Subresource != "" {
		need.Resource += "/" + m.Subresource
	}
	return &rbac.ForbiddenError{Need: need, Err: fmt.Errorf("you may not %s %s", writeVerb, m.Resource)}
}

// MissingPermissions asks for every resource in all namespaces, then in each, and then
// for each object, since a role may name its objects; each step only where the answer
// before was no. The result is in order of resource and namespace. The error is that of a request.
func MissingPermissions(ctx context.Context, a engine.Authorizer, needs []RequiredPermission, workers int) ([]MissingPermission, error) {
	for _, step := range []func(RequiredPermission) RequiredPermission{
		func(n RequiredPermission) RequiredPermission { return RequiredPermission{Resource: n.Resource} },
		func(n RequiredPermission) RequiredPermission { n.Name = ""; return n },
		func(n RequiredPermission) RequiredPermission { return n },
	} {
		allowed, err := allowedOf(ctx, a, needs, step, workers)
		if err != nil {
			return nil, err
		}
		needs = slices.DeleteFunc(slices.Clone(needs), func(n RequiredPermission) bool { return allowed[step(n)] })
	}
	slices.SortStableFunc(needs, func(x, y RequiredPermission) int {
		return cmp.Or(cmp.Compare(x.Resource.String(), y.Resource.String()), cmp.Compare(x.Namespace, y.Namespace))
	})
	var out []MissingPermission
	for _, n := range needs {
		if last := len(out) - 1; last < 0 || out[last].Resource != n.Resource || out[last].Namespace != n.Namespace {
			out = append(out, MissingPermission{Resource: n.Resource, Namespace: n.Namespace})
		}
		m := &out[len(out)-1]
		m.Names = append(m.Names, n.Name)
	}
	return out, nil
}

// allowedOf asks, once each, for what a step makes of the permissions, and returns those that the user has.
func allowedOf(ctx context.Context, a engine.Authorizer, needs []RequiredPermission, step func(RequiredPermission) RequiredPermission, workers int) (map[RequiredPermission]bool, error) {
	out := map[RequiredPermission]bool{}
	for _, n := range needs {
		out[step(n)] = false
	}
	asked := slices.Collect(maps.Keys(out))
	err := ForEach(len(asked), workers, func(i int) (bool, error) {
		n := asked[i]
		decision, err := a.Authorize(ctx, engine.AccessRequest{
			Verb: writeVerb, Group: n.Group, Resource: n.Resource.Resource, Subresource: n.Subresource, Namespace: n.Namespace, Name: n.Name,
		})
		if err != nil {
			err = fmt.Errorf("asking whether you may %s %s: %w", writeVerb, n.Resource, err)
		}
		return decision.Allowed, err
	}, func(i int, allowed bool) (enough bool) {
		out[asked[i]] = allowed
		return false
	})
	return out, err
}
