package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// RetryingClient sends the requests of a run that writes. It repeats what can be
// repeated: reads, dry runs, and writes that the server has not begun to work on
// (429). Any other write is sent once: its caller looks up what became of it.
//
// It waits longer than a Client, which gives up early: a preview can be made
// again, but a run that writes should outlast a restart of the server.
type RetryingClient struct {
	Client *Client
	// Backoff is between attempts; without Steps it is DefaultBackoff.
	Backoff wait.Backoff
}

// Get reads an object as Client.Get does.
func (c RetryingClient) Get(ctx context.Context, key engine.ObjectKey) (object *unstructured.Unstructured, err error) {
	err = Retry(ctx, c.Backoff, func() error {
		object, err = c.Client.Get(withoutRetry(ctx), key)
		return err
	})
	return object, err
}

// Patch sends a patch as Client.Patch does.
func (c RetryingClient) Patch(ctx context.Context, key engine.ObjectKey, p Patch) (object *unstructured.Unstructured, err error) {
	again := func(answer error) bool {
		final := p.Type == types.ApplyPatchType && IsMergeFailure(answer)
		return p.DryRun && !final || apierrors.IsTooManyRequests(answer)
	}
	err = retryIf(ctx, c.Backoff, again, func() error {
		object, err = c.Client.Patch(ctx, key, p)
		return err
	})
	return object, err
}

// Types returns the schema of a kind as Client.Types does.
func (c RetryingClient) Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (types managedfields.TypeConverter, err error) {
	err = Retry(ctx, c.Backoff, func() error {
		types, err = c.Client.Types(withoutRetry(ctx), gvk, refresh)
		return err
	})
	return types, err
}
