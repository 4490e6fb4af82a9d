package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Server is what a Writer needs of an API server. Errors that the server itself
// answers are API status errors, as of k8s.io/apimachinery/pkg/api/errors; any
// other error ends the run.
type Server interface {
	// Get reads an object, or the subresource that the key names, from the server
	// and from no cache, with its managedFields.
	Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error)
	// Patch sends a patch to the object, or to the subresource that the key
	// names, with strict field validation.
	Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error)
	// Types knows the schema of a kind; nil where the server publishes none.
	// Refresh reads it again even if it has been read before.
	Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (managedfields.TypeConverter, error)
}
