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
	c := permissionChecker{access: a, needs: needs, workers: workers}
	resources := map[Resource]bool{}
	for _, n := range needs {
		resources[n.Resource] = true
	}
	var out []MissingPermission
	for _, r := range slices.SortedFunc(maps.Keys(resources), func(x, y Resource) int { return cmp.Compare(x.String(), y.String()) }) {
		missing, err := c.resource(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("asking whether you may %s %s: %w", writeVerb, r, err)
		}
		out = append(out, missing...)
	}
	return out, nil
}

// permissionChecker asks with a number of workers.
type permissionChecker struct {
	access  engine.Authorizer
	needs   []RequiredPermission
	workers int
}

func (c *permissionChecker) resource(ctx context.Context, r Resource) ([]MissingPermission, error) {
	if ok, err := c.allowed(ctx, RequiredPermission{Resource: r}); ok || err != nil {
		return nil, err
	}
	names := map[string][]string{} // by namespace
	for _, n := range c.needs {
		if n.Resource == r {
			names[n.Namespace] = nil
		}
	}
	namespaces := slices.Sorted(maps.Keys(names))
	denied, err := c.denied(ctx, len(namespaces), func(i int) RequiredPermission { return RequiredPermission{Resource: r, Namespace: namespaces[i]} })
	if err != nil {
		return nil, err
	}
	for i, namespace := range namespaces {
		if !denied[i] {
			delete(names, namespace)
		}
	}
	for _, n := range c.needs {
		if _, is := names[n.Namespace]; is && n.Resource == r {
			names[n.Namespace] = append(names[n.Namespace], n.Name)
		}
	}
	var out []MissingPermission
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		names := names[namespace]
		byName, err := c.denied(ctx, len(names), func(i int) RequiredPermission { return RequiredPermission{r, namespace, names[i]} })
		if err != nil {
			return nil, err
		}
		m := MissingPermission{Resource: r, Namespace: namespace}
		for j, name := range names {
			if byName[j] {
				m.Names = append(m.Names, name)
			}
		}
		if len(m.Names) > 0 {
			out = append(out, m)
		}
	}
	return out, nil
}

// denied asks for several permissions at once.
func (c *permissionChecker) denied(ctx context.Context, n int, need func(i int) RequiredPermission) ([]bool, error) {
	denied := make([]bool, 0, n)
	err := ForEach(n, c.workers, func(i int) (bool, error) {
		allowed, err := c.allowed(ctx, need(i))
		return !allowed, err
	}, func(_ int, no bool) (enough bool) {
		denied = append(denied, no)
		return false
	})
	return denied, err
}

func (c *permissionChecker) allowed(ctx context.Context, n RequiredPermission) (bool, error) {
	decision, err := c.access.Authorize(ctx, engine.AccessRequest{
		Verb: writeVerb, Group: n.Group, Resource: n.Resource.Resource, Subresource: n.Subresource, Namespace: n.Namespace, Name: n.Name,
	})
	return decision.Allowed, err
}
