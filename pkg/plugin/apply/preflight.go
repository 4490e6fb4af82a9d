package apply

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// checkPermissions asks the server whether the user may write all of the objects, and
// shows what is missing in a table. If the server cannot be asked there is a warning,
// and the dry runs show it object by object.
func (x *Executor) checkPermissions(ctx context.Context, tasks []*queued) error {
	var needs []RequiredPermission
	for _, q := range tasks {
		more, err := x.RequiredPermissions(ctx, q.Task)
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
func (x *Executor) RequiredPermissions(ctx context.Context, t *Task) (needs []RequiredPermission, _ error) {
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
	resource := Resource{Group: key.Group, Resource: mapping.Resource.Resource, Subresource: key.Subresource}
	need := RequiredPermission{Resource: resource, Namespace: key.Namespace, Name: key.Name}
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", writeVerb, wording.Cell(m.Resource.String()), wording.Cell(cmp.Or(m.Namespace, "(cluster)")), wording.Cell(engine.Few(m.Names)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(x.ErrOut, text.String())
	return err
}
