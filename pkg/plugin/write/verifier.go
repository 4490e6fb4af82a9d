package write

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// Verifier checks whether the changes of tasks can be written, without writing.
type Verifier struct {
	// Writer sends the requests.
	Writer *Writer
	// Access checks the user's permissions, and Mapper maps kinds to resources.
	Access engine.Authorizer
	Mapper meta.RESTMapper
	// Concurrency is how many objects are verified, or written, at once; 1 or more.
	Concurrency int
	ErrOut      io.Writer
	Meter       *wording.Meter // may be nil
}

// IsDryRun reports whether the run writes nothing.
func (v *Verifier) IsDryRun() bool { return v.Writer.DryRun != DryRunNone }

func (v *Verifier) writerOf(t *Task) *Writer {
	w := *v.Writer
	w.quiet = len(t.secrets()) > 0
	return &w
}

// Verify verifies the change of a task. It reads the object unless the listed one is held. It is safe for
// concurrent use with different tasks. Problems of the change are the outcome of the result; the error is an
// error of Writer.Verify.
func (v *Verifier) Verify(ctx context.Context, t *Task,
	listed *unstructured.Unstructured,
) (*Verified, error) {
	if !t.mayUse(listed) {
		listed = nil
	}
	out, err := v.writerOf(t).Verify(ctx, t.Key, listed, t.want)
	if err != nil {
		return nil, err
	}
	if s := out.status; s != nil && out.Outcome == Planned && s.Err != nil {
		out.Outcome, out.Err = s.Outcome, s.Err // both parts are written, or none
	}
	if out.Outcome == Failed {
		out.Instead = impact.Workload(out.Before)
	}
	if !v.IsDryRun() { // a run over ten thousand objects cannot keep them
		out.Before, out.After, out.Changed, out.Removed = nil, nil, nil, nil
		if out.status != nil {
			out.status.Before, out.status.After = nil, nil
		}
	}
	out.Touched, out.Secrets = out.Touched.Sharing(t.Entry.Partial), t.secrets()
	return out, nil
}

const writeVerb = "patch"

// what formats a need as kubectl auth can-i does: "deployments.apps/scale".
func what(n permission.Need) string {
	resource, subresource, _ := strings.Cut(n.Resource, "/")
	text := schema.GroupResource{Group: n.Group, Resource: resource}.String()
	if subresource != "" {
		text += "/" + subresource
	}
	return text
}

// Forbidden is the error of a write without permission.
func Forbidden(n permission.Need) *permission.ForbiddenError {
	n.Name = ""
	return &permission.ForbiddenError{Need: n, Err: fmt.Errorf("you may not %s %s", writeVerb, what(n))}
}

// MissingPermissions checks every resource in all namespaces, then in each, then each object, since a role
// may name its objects; a no leads to the next step. The result is sorted by resource and namespace. The
// error is a failed request.
func MissingPermissions(ctx context.Context, a engine.Authorizer, needs []permission.Need,
	workers int,
) ([]permission.Need, error) {
	for _, step := range []func(permission.Need) permission.Need{
		func(n permission.Need) permission.Need { n.Namespace, n.Name = "", ""; return n },
		func(n permission.Need) permission.Need { n.Name = ""; return n },
		func(n permission.Need) permission.Need { return n },
	} {
		allowed, err := allowedOf(ctx, a, needs, step, workers)
		if err != nil {
			return nil, err
		}
		needs = slices.DeleteFunc(slices.Clone(needs), func(n permission.Need) bool { return allowed[step(n)] })
	}
	slices.SortStableFunc(needs, func(x, y permission.Need) int {
		return cmp.Or(cmp.Compare(what(x), what(y)), cmp.Compare(x.Namespace, y.Namespace))
	})
	return needs, nil
}

// allowedOf checks what a step derives from the permissions, once each, and returns the allowed ones.
func allowedOf(ctx context.Context, a engine.Authorizer, needs []permission.Need,
	step func(permission.Need) permission.Need, workers int,
) (map[permission.Need]bool, error) {
	out := map[permission.Need]bool{}
	for _, n := range needs {
		out[step(n)] = false
	}
	asked := slices.Collect(maps.Keys(out))
	err := ForEach(len(asked), workers, func(i int) (bool, error) {
		n := asked[i]
		resource, subresource, _ := strings.Cut(n.Resource, "/")
		decision, err := a.Authorize(ctx, engine.AccessRequest{
			Verb: writeVerb, Group: n.Group, Resource: resource, Subresource: subresource,
			Namespace: n.Namespace, Name: n.Name,
		})
		if err != nil {
			err = fmt.Errorf("asking whether you may %s %s: %w", writeVerb, what(n), err)
		}
		return decision.Allowed, err
	}, func(i int, allowed bool) (enough bool, _ error) {
		out[asked[i]] = allowed
		return false, nil
	})
	return out, err
}

// checkPermissions checks whether the user may write all objects, and shows missing permissions in a table.
// If the server cannot be asked, it only warns, and the dry runs report each object.
func (v *Verifier) checkPermissions(ctx context.Context, tasks []*Task) error {
	var needs []permission.Need
	for _, t := range tasks {
		more, err := v.RequiredPermissions(ctx, t)
		if err != nil {
			return err
		}
		needs = append(needs, more...)
	}
	missing, err := MissingPermissions(ctx, v.Access, needs, v.Concurrency)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		fmt.Fprintf(v.ErrOut, "warning: %v; the dry runs will show what is forbidden\n", err)
		return nil
	case len(missing) == 0:
		return nil
	}
	if err := v.showMissing(missing); err != nil || v.Writer.SkipRejected {
		return err // the dry run rejects each of them
	}
	return fmt.Errorf("you may not write %s; ask for the permissions above, or exclude these objects", wording.Plural(len(missing), "object"))
}

// RequiredPermissions returns the permissions for a task. The error is a failed request, or a kind that the
// server lacks.
func (v *Verifier) RequiredPermissions(ctx context.Context, t *Task) (needs []permission.Need, _ error) {
	key := t.Key
	mapping, err := v.Mapper.RESTMapping(key.GroupKind, key.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	hasStatus := false
	if slices.Contains(t.Endpoints, request.StatusSubresource) && key.Subresource == "" {
		if hasStatus, err = v.Writer.HasStatus(ctx, key.GroupVersionKind()); err != nil {
			return nil, err
		}
	}
	add := func(subresource string) {
		resource := strings.TrimSuffix(mapping.Resource.Resource+"/"+subresource, "/")
		needs = append(needs,
			permission.Need{
				Verb: writeVerb, Group: key.Group, Resource: resource, Namespace: key.Namespace,
				Name: key.Name,
			})
	}
	if !hasStatus || slices.Contains(t.Endpoints, "") {
		add(key.Subresource)
	}
	if hasStatus {
		add(request.StatusSubresource)
	}
	return needs, nil
}

// showMissing shows a row for each resource and namespace.
func (v *Verifier) showMissing(missing []permission.Need) error {
	fmt.Fprintln(v.ErrOut, "Permissions that you need and do not have:")
	rows := [][]string{{"VERB", "RESOURCE", "NAMESPACE", "OBJECTS"}}
	for len(missing) > 0 {
		n, names := missing[0], []string{}
		for len(missing) > 0 && what(missing[0]) == what(n) && missing[0].Namespace == n.Namespace {
			names, missing = append(names, missing[0].Name), missing[1:]
		}
		rows = append(rows,
			[]string{writeVerb, what(n), cmp.Or(n.Namespace, "(cluster)"), wording.Cell(engine.Few(names))})
	}
	_, err := io.WriteString(v.ErrOut, wording.Table(rows))
	return err
}
