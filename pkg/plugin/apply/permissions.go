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

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// writeVerb is the verb of every write of this program.
const writeVerb = "patch"

// what is "deployments.apps/scale", as kubectl auth can-i takes it.
func what(n rbac.Need) string {
	resource, subresource, _ := strings.Cut(n.Resource, "/")
	text := schema.GroupResource{Group: n.Group, Resource: resource}.String()
	if subresource != "" {
		text += "/" + subresource
	}
	return text
}

// Forbidden is the error of a write without a permission.
func Forbidden(n rbac.Need) *rbac.ForbiddenError {
	n.Name = ""
	return &rbac.ForbiddenError{Need: n, Err: fmt.Errorf("you may not %s %s", writeVerb, what(n))}
}

// MissingPermissions asks for every resource in all namespaces, then in each, and then
// for each object, since a role may name its objects; each step only where the answer
// before was no. The result is in order of resource and namespace. The error is that of a request.
func MissingPermissions(ctx context.Context, a engine.Authorizer, needs []rbac.Need, workers int) ([]rbac.Need, error) {
	for _, step := range []func(rbac.Need) rbac.Need{
		func(n rbac.Need) rbac.Need { n.Namespace, n.Name = "", ""; return n },
		func(n rbac.Need) rbac.Need { n.Name = ""; return n },
		func(n rbac.Need) rbac.Need { return n },
	} {
		allowed, err := allowedOf(ctx, a, needs, step, workers)
		if err != nil {
			return nil, err
		}
		needs = slices.DeleteFunc(slices.Clone(needs), func(n rbac.Need) bool { return allowed[step(n)] })
	}
	slices.SortStableFunc(needs, func(x, y rbac.Need) int {
		return cmp.Or(cmp.Compare(what(x), what(y)), cmp.Compare(x.Namespace, y.Namespace))
	})
	return needs, nil
}

// allowedOf asks, once each, for what a step makes of the permissions, and returns those that the user has.
func allowedOf(ctx context.Context, a engine.Authorizer, needs []rbac.Need, step func(rbac.Need) rbac.Need, workers int) (map[rbac.Need]bool, error) {
	out := map[rbac.Need]bool{}
	for _, n := range needs {
		out[step(n)] = false
	}
	asked := slices.Collect(maps.Keys(out))
	err := ForEach(len(asked), workers, func(i int) (bool, error) {
		n := asked[i]
		resource, subresource, _ := strings.Cut(n.Resource, "/")
		decision, err := a.Authorize(ctx, engine.AccessRequest{
			Verb: writeVerb, Group: n.Group, Resource: resource, Subresource: subresource, Namespace: n.Namespace, Name: n.Name,
		})
		if err != nil {
			err = fmt.Errorf("asking whether you may %s %s: %w", writeVerb, what(n), err)
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
	var needs []rbac.Need
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
	if err := x.showMissing(missing); err != nil || x.SkipRejected {
		return err // each of them is rejected by its own dry run
	}
	return fmt.Errorf("you may not write %s; ask for the permissions above, or exclude these objects", wording.Plural(len(missing), "object"))
}

// RequiredPermissions are those that a task needs. The error is that of a request, or of a kind that the
// server does not have.
func (x *Executor) RequiredPermissions(ctx context.Context, t *Task) (needs []rbac.Need, _ error) {
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
	add := func(subresource string) {
		resource := strings.TrimSuffix(mapping.Resource.Resource+"/"+subresource, "/")
		needs = append(needs, rbac.Need{Verb: writeVerb, Group: key.Group, Resource: resource, Namespace: key.Namespace, Name: key.Name})
	}
	if !hasStatus || slices.Contains(t.Endpoints, "") {
		add(key.Subresource)
	}
	if hasStatus {
		add(request.StatusSubresource)
	}
	return needs, nil
}

// showMissing has a row for the objects of a resource in a namespace.
func (x *Executor) showMissing(missing []rbac.Need) error {
	fmt.Fprintln(x.ErrOut, "Permissions that you need and do not have:")
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "VERB\tRESOURCE\tNAMESPACE\tOBJECTS")
	for len(missing) > 0 {
		n, names := missing[0], []string{}
		for len(missing) > 0 && what(missing[0]) == what(n) && missing[0].Namespace == n.Namespace {
			names, missing = append(names, missing[0].Name), missing[1:]
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", writeVerb, wording.Cell(what(n)), wording.Cell(cmp.Or(n.Namespace, "(cluster)")), wording.Cell(engine.Few(names)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(x.ErrOut, text.String())
	return err
}
