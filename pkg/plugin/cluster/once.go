package cluster

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Once is a Client that sends every request of a Writer once. Whoever writes
// decides what is repeated, and how patiently: client-go's own retries would
// hide what happened, and multiply.
type Once struct{ *Client }

// Get reads one object as Client.Get does.
func (c Once) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	segments, err := c.pathOf(ctx, key)
	if err != nil {
		return nil, err
	}
	return c.object(do(WithoutRetry(ctx), http.MethodGet, c.rest.Get().AbsPath(segments...).MaxRetries(0)))
}
