package undo

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

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
	var applied []engine.ObjectKey
	for i := range r.Objects {
		if r.Objects[i].Applied {
			applied = append(applied, r.Objects[i].Object)
		}
	}
	return apply.ForEach(len(applied), r.Executor.Concurrency,
		func(i int) (error, error) {
			if ctx.Err() != nil {
				return nil, apply.ErrInterrupted
			}
			return r.releaseOne(ctx, applied[i]), nil
		},
		func(i int, err error) (enough bool) {
			if err != nil {
				fmt.Fprintf(r.Executor.ErrOut, "warning: %s: %s still owns keys of list elements: %s\n",
					applied[i], r.Journal.Header.FieldManager, redact.ServerError(err))
			}
			return false
		})
}

// releaseOne repeats all of it: what is left to give up is read again each time.
func (r *Reversal) releaseOne(ctx context.Context, key engine.ObjectKey) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		return cluster.Retry(ctx, r.Executor.Writer.Retry, func() error { return r.tryRelease(ctx, key) })
	})
}

// errWouldChange keeps an element that no one else owns from being removed.
var errWouldChange = errors.New("giving them up would change the object")

// tryRelease sends nothing unless the server would leave the object as it is.
func (r *Reversal) tryRelease(ctx context.Context, key engine.ObjectKey) error {
	server := r.Executor.Writer.Server
	live, err := server.Get(ctx, key)
	if apierrors.IsNotFound(err) || (err == nil && key.UID != "" && key.UID != live.GetUID()) {
		return nil
	}
	if err != nil {
		return err
	}
	schemas, err := server.Types(ctx, live.GroupVersionKind(), false)
	if err != nil {
		return err
	}
	body, err := withoutKeys(live, r.Journal.Header.FieldManager, schemas)
	if err != nil || body == nil {
		return err
	}
	p := cluster.Patch{
		Type: types.ApplyPatchType, Body: body, FieldManager: r.Journal.Header.FieldManager, Force: true, DryRun: true,
	}
	answer, err := server.Patch(ctx, key, p)
	if err != nil {
		return err
	}
	if changed, err := request.Drift(live, answer); err != nil || len(changed) > 0 {
		return errors.Join(err, errWouldChange)
	}
	p.DryRun = false
	_, err = server.Patch(ctx, key, p)
	return err
}
