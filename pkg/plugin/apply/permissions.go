package apply

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// writeVerb is the verb of every write of this program.
const writeVerb = "patch"

// Permission is the permission to write one object; with an empty name, all objects of a namespace.
type Permission struct{ Group, Resource, Subresource, Namespace, Name string }

// what is "deployments.apps/scale", as kubectl auth can-i takes it.
func (p Permission) what() string {
	text := p.Resource
	if p.Group != "" {
		text += "." + p.Group
	}
	if p.Subresource != "" {
		text += "/" + p.Subresource
	}
	return text
}

// MissingPermission is a permission that the user does not have.
type MissingPermission struct {
	Permission // without a name
	// Names are the objects; the permission is missing for all of them.
	Names []string
}

// Forbidden is the error of a write without the permission.
func (m *MissingPermission) Forbidden() *rbac.ForbiddenError {
	need := rbac.Need{Verb: writeVerb, Group: m.Group, Resource: m.Resource, Namespace: m.Namespace}
	if m.Subresource != "" {
		need.Resource += "/" + m.Subresource
	}
	return &rbac.ForbiddenError{Need: need, Err: fmt.Errorf("you may not %s %s", writeVerb, m.what())}
}

// MissingPermissions asks for every resource in all namespaces, then in each, and then
// for each object, since a role may name its objects; each step only where the answer
// before was no. The result is in order of resource and namespace. The error is that of a request.
func MissingPermissions(ctx context.Context, a engine.Authorizer, needs []Permission, workers int) ([]MissingPermission, error) {
	for _, step := range []func(Permission) Permission{
		func(n Permission) Permission { n.Namespace, n.Name = "", ""; return n },
		func(n Permission) Permission { n.Name = ""; return n },
		func(n Permission) Permission { return n },
	} {
		allowed, err := allowedOf(ctx, a, needs, step, workers)
		if err != nil {
			return nil, err
		}
		needs = slices.DeleteFunc(slices.Clone(needs), func(n Permission) bool { return allowed[step(n)] })
	}
	slices.SortStableFunc(needs, func(x, y Permission) int {
		return cmp.Or(cmp.Compare(x.what(), y.what()), cmp.Compare(x.Namespace, y.Namespace))
	})
	var out []MissingPermission
	for _, n := range needs {
		of := n
		of.Name = ""
		if last := len(out) - 1; last < 0 || out[last].Permission != of {
			out = append(out, MissingPermission{Permission: of})
		}
		m := &out[len(out)-1]
		m.Names = append(m.Names, n.Name)
	}
	return out, nil
}

// allowedOf asks, once each, for what a step makes of the permissions, and returns those that the user has.
func allowedOf(ctx context.Context, a engine.Authorizer, needs []Permission, step func(Permission) Permission, workers int) (map[Permission]bool, error) {
	out := map[Permission]bool{}
	for _, n := range needs {
		out[step(n)] = false
	}
	asked := slices.Collect(maps.Keys(out))
	err := ForEach(len(asked), workers, func(i int) (bool, error) {
		n := asked[i]
		decision, err := a.Authorize(ctx, engine.AccessRequest{
			Verb: writeVerb, Group: n.Group, Resource: n.Resource, Subresource: n.Subresource, Namespace: n.Namespace, Name: n.Name,
		})
		if err != nil {
			err = fmt.Errorf("asking whether you may %s %s: %w", writeVerb, n.what(), err)
		}
		return decision.Allowed, err
	}, func(i int, allowed bool) (enough bool) {
		out[asked[i]] = allowed
		return false
	})
	return out, err
}

// checkPermissions asks the server whether the user may write all of the objects, and
// shows what is missing in a table. If the server cannot be asked there is a warning,
// and the dry runs show it object by object.
func (x *Executor) checkPermissions(ctx context.Context, tasks []*Task) error {
	var needs []Permission
	for _, t := range tasks {
		more, err := x.RequiredPermissions(ctx, t)
		if err != nil {
			return err
		}
		needs = append(needs, more...)
	}
	missing, err := MissingPermissions(ctx, x.Access, needs, x.Concurrency)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		fmt.Fprintf(x.ErrOut, "warning: %v; the dry runs will show what is forbidden\n", err)
		return nil
	case len(missing) == 0:
		return nil
	}
	objects := 0
	for _, m := range missing {
		objects += len(m.Names)
	}
	if err := x.showMissing(missing); err != nil || x.SkipRejected {
		return err // each of them is rejected by its own dry run
	}
	return fmt.Errorf("you may not write %s; ask for the permissions above, or exclude these objects", wording.Plural(objects, "object"))
}

// RequiredPermissions are those that a task needs. The error is that of a request, or of a kind that the
// server does not have.
func (x *Executor) RequiredPermissions(ctx context.Context, t *Task) (needs []Permission, _ error) {
	key := t.Key
	mapping, err := x.Mapper.RESTMapping(key.GroupKind, key.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	hasStatus := false
	if slices.Contains(t.Endpoints, request.StatusSubresource) && key.Subresource == "" {
		if hasStatus, err = x.Writer.HasStatus(ctx, key.GroupVersionKind()); err != nil {
			return nil, err
		}
	}
	need := Permission{Group: key.Group, Resource: mapping.Resource.Resource, Subresource: key.Subresource, Namespace: key.Namespace, Name: key.Name}
	if !hasStatus || slices.Contains(t.Endpoints, "") {
		needs = append(needs, need)
	}
	if hasStatus {
		need.Subresource = request.StatusSubresource
		needs = append(needs, need)
	}
	return needs, nil
}

func (x *Executor) showMissing(missing []MissingPermission) error {
	fmt.Fprintln(x.ErrOut, "Permissions that you need and do not have:")
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "VERB\tRESOURCE\tNAMESPACE\tOBJECTS")
	for _, m := range missing {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", writeVerb, wording.Cell(m.what()), wording.Cell(cmp.Or(m.Namespace, "(cluster)")), wording.Cell(engine.Few(m.Names)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(x.ErrOut, text.String())
	return err
}
