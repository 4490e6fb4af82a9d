package apply

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Patient is a Server that is waited for. It repeats what can be repeated:
// reads, dry runs, and writes that the server has not begun to work on (429).
// Any other write it leaves to a Writer, which looks the outcome up.
type Patient struct {
	Server
	Retry cluster.RetryPolicy
}

// Get reads an object.
func (p Patient) Get(ctx context.Context, key engine.ObjectKey) (object *unstructured.Unstructured, err error) {
	err = p.Retry.Do(ctx, func() error {
		object, err = p.Server.Get(ctx, key)
		return err
	})
	return object, err
}

// Patch sends a patch.
func (p Patient) Patch(ctx context.Context, key engine.ObjectKey, patch cluster.Patch) (object *unstructured.Unstructured, err error) {
	var answer error
	err = p.Retry.Do(ctx, func() error {
		object, answer = p.Server.Patch(ctx, key, patch)
		final := patch.Type == types.ApplyPatchType && cannotApply(answer)
		if patch.DryRun && !final || apierrors.IsTooManyRequests(answer) {
			return answer
		}
		return nil
	})
	if err == nil {
		err = answer
	}
	return object, err
}

// Types knows the schema of a kind.
func (p Patient) Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (types managedfields.TypeConverter, err error) {
	err = p.Retry.Do(ctx, func() error {
		types, err = p.Server.Types(ctx, gvk, refresh)
		return err
	})
	return types, err
}

// cannotApply knows the 500 by which a server says that it cannot merge what is
// applied, which no waiting mends: unlike those of its own troubles it comes
// without a reason (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters,
// ErrorToAPIStatus).
func cannotApply(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError &&
		status.Status().Reason == ""
}
