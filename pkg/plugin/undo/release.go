package undo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// release gives up what the run still owns of objects although its values are
// reverted: the keys of the list elements that its fields were in. The objects do not
// change, and a failure leaves nothing behind but that ownership, so it is a warning.
func (r *Reversal) release(ctx context.Context) error {
	listed := slices.DeleteFunc(slices.Clone(r.Objects), func(o Object) bool { return !o.Applied || !o.inLists() })
	return apply.ForEach(len(listed), r.Executor.Concurrency,
		func(i int) (failed, broken error) {
			if ctx.Err() != nil {
				return nil, apply.ErrInterrupted
			}
			return r.releaseOne(listed[i].under(ctx), listed[i].Object), nil
		},
		func(i int, failed error) (enough bool) {
			if failed != nil {
				why := redact.ServerError(failed)
				if len(listed[i].secret()) > 0 {
					why = engine.ErrHidden.Error()
				}
				fmt.Fprintf(r.Executor.ErrOut, "warning: %s: %s still owns keys of list elements: %s\n", listed[i].Object, r.Header.FieldManager, why)
			}
			return false
		})
}

// inLists reports whether a write of an object may have touched elements of a list: only these have keys.
func (o *Object) inLists() bool {
	return slices.ContainsFunc(o.Writes, func(w Write) bool {
		return slices.ContainsFunc(w.Fields, func(f engine.FieldChange) bool {
			from, to := w.Contents(f)
			return f.Withheld || slices.ContainsFunc(f.Path, func(e fieldpath.PathElement) bool { return e.FieldName == nil }) ||
				hasList(from) || hasList(to)
		})
	})
}

// hasList reports whether a value is a list, or has one in it.
func hasList(value any) bool {
	switch value := value.(type) {
	case []any:
		return true
	case map[string]any:
		for _, v := range value {
			if hasList(v) {
				return true
			}
		}
	}
	return false
}

// releaseOne begins again if another client was faster, or if the answer to the write was
// lost: what is left to give up is read each time. The Server repeats all else.
func (r *Reversal) releaseOne(ctx context.Context, key engine.ObjectKey) error {
	for attempts := cluster.NewAttempts(r.Executor.Writer.Retry); ; {
		sent, err := r.tryRelease(ctx, key)
		if !apierrors.IsConflict(err) && (!sent || !cluster.Unsettled(ctx, err)) {
			return err
		}
		if err := attempts.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// errWouldChange keeps an element that no one else owns from being removed.
var errWouldChange = errors.New("giving them up would change the object")

// tryRelease sends nothing unless the server would leave the object as it is. Sent reports
// whether the error is that of the write.
func (r *Reversal) tryRelease(ctx context.Context, key engine.ObjectKey) (sent bool, _ error) {
	server := r.Executor.Writer.Server
	live, err := server.Get(ctx, key)
	if apierrors.IsNotFound(err) || (err == nil && key.UID != "" && key.UID != live.GetUID()) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	schemas, err := server.Types(ctx, live.GroupVersionKind(), false)
	if err != nil {
		return false, err
	}
	body, err := withoutKeys(live, r.Header.FieldManager, schemas)
	if err != nil || body == nil {
		return false, err
	}
	p := cluster.Patch{
		Type: types.ApplyPatchType, Body: body, FieldManager: r.Header.FieldManager, Force: true, DryRun: true,
	}
	answer, err := server.Patch(ctx, key, p)
	if err != nil {
		return false, err
	}
	if changed, err := request.Drift(live, answer); err != nil || len(changed) > 0 {
		return false, errors.Join(err, errWouldChange)
	}
	p.DryRun = false
	_, err = server.Patch(ctx, key, p)
	return true, err
}
