package undo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// release gives up the fields that the run still owns although its values are reverted: the keys of list
// elements with its fields. The objects do not change, and a failure only leaves that ownership, so it is a
// warning.
func (o *Options) release(ctx context.Context) error {
	applied := slices.DeleteFunc(slices.Clone(o.Objects), func(of Object) bool { return !of.Applied })
	return write.ForEach(len(applied), o.Executor.Concurrency,
		func(i int) (failed, broken error) {
			if ctx.Err() != nil {
				return nil, write.ErrInterrupted
			}
			return o.releaseOne(ctx, &applied[i]), nil
		},
		func(i int, failed error) (enough bool, _ error) {
			if failed != nil {
				why := redact.ServerError(failed)
				if len(applied[i].secret()) > 0 {
					why = engine.ErrHidden.Error()
				}
				fmt.Fprintf(o.Executor.ErrOut, "warning: %s: %s still owns keys of list elements: %s\n", applied[i].Object, o.Header.FieldManager, why)
			}
			return false, nil
		})
}

// releaseOne tries again after a conflict or an unknown outcome: it reads the remaining ownership each time.
func (o *Options) releaseOne(ctx context.Context, of *Object) error {
	for attempts := cluster.NewAttempts(o.Executor.Writer.Patience); ; {
		sent, err := o.tryRelease(ctx, of)
		// the Server repeats reads
		if !apierrors.IsConflict(err) && (!sent || !cluster.Unsettled(ctx, err)) {
			return err
		}
		if err := attempts.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// tryRelease writes only the managedFields of an object, as the manager that gives them up. Sent reports
// whether the write failed.
func (o *Options) tryRelease(ctx context.Context, of *Object) (sent bool, _ error) {
	server := o.Executor.Writer.Server
	live, err := server.Get(ctx, of.Object)
	if apierrors.IsNotFound(err) || (err == nil && of.Object.UID != "" && of.Object.UID != live.GetUID()) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	owners, err := withoutKeys(live, o.Header.FieldManager)
	if owners == nil || err != nil {
		return false, err
	}
	version := fieldpath.MakePathOrDie("metadata", "resourceVersion")
	fields := fieldpath.MakePathOrDie("metadata", "managedFields")
	body, err := json.Marshal([]diff.Edit{
		{Op: diff.OpReplace, Path: version, Value: live.GetResourceVersion()},
		{Op: diff.OpReplace, Path: fields, Value: owners},
	})
	if err != nil {
		return false, err
	}
	_, err = server.Patch(ctx, of.Object, cluster.Patch{
		Type: types.JSONPatchType, Body: body, FieldManager: o.Header.FieldManager, Quiet: len(of.secret()) > 0,
	})
	return true, err
}

// withoutKeys returns the managedFields of an object without the list elements of which a manager owns only
// the key; nil if there are none. Reverting the applied fields leaves these keys in its Apply entry, and as
// long as they stay, the owner of the elements cannot remove them.
func withoutKeys(live *unstructured.Unstructured, manager string) ([]metav1.ManagedFieldsEntry, error) {
	all := live.GetManagedFields()
	i := slices.IndexFunc(all, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
	if i < 0 {
		return nil, nil
	}
	own, err := request.FieldsOf(all[i])
	if err != nil {
		return nil, fmt.Errorf("managedFields of %s cannot be read: %w", manager, err)
	}
	rest := fieldpath.NewSet()
	for p := range own.All() {
		if elementOf(p) == nil {
			rest.Insert(p.Copy())
		}
	}
	kept := rest.Union(fieldpath.NewSet())
	for p := range own.Difference(rest).All() {
		if !request.Below(rest, elementOf(p)).Empty() {
			kept.Insert(p.Copy())
		}
	}
	text, err := kept.ToJSON()
	switch {
	case err != nil || kept.Size() == own.Size():
		return nil, err
	case kept.Empty():
		return slices.Delete(all, i, i+1), nil
	}
	all[i].FieldsV1 = metav1.NewFieldsV1(string(text))
	return all, nil
}

// elementOf returns the list element at a path, or with the path in its key; nil for other paths.
func elementOf(p fieldpath.Path) fieldpath.Path {
	switch n := len(p); {
	case p[n-1].Key != nil:
		return p
	case request.IsListKey(p):
		return p[:n-1]
	}
	return nil
}
