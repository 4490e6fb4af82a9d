package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/touched"
)

// Trace is what is known of a request that may have been stored.
type Trace struct {
	Key             engine.ObjectKey
	ResourceVersion string // that the request was guarded with
	// Touched is the object before the request, and as the dry run answered.
	Touched touched.Touched
}

// Fate is what became of a request whose answer was lost.
type Fate string

// The fates.
const (
	// Stored: the fields are as the server would have made them.
	Stored Fate = "stored"
	// NotStored: the object is the very version that the request was made for.
	NotStored Fate = "not-stored"
	// Overwritten: somebody else has written the object, and the fields are as
	// they were before, or it cannot be told because they hold secrets. Whether
	// the change is still to be made has to be evaluated.
	Overwritten Fate = "overwritten"
	// Contradicted: somebody else has written the fields.
	Contradicted Fate = "contradicted"
	// Gone and Other: the object does not exist any more, or another one has its name.
	Gone  Fate = "gone"
	Other Fate = "other"
)

// Find looks up what became of a request whose answer was lost, and returns the
// object as it is now.
func (w *Writer) Find(ctx context.Context, trace Trace) (Fate, *unstructured.Unstructured, error) {
	live, err := w.Server.Get(ctx, readable(trace.Key))
	switch {
	case apierrors.IsNotFound(err):
		return Gone, nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("looking for the outcome of a write whose answer was lost: %w", err)
	case trace.Key.UID != "" && live.GetUID() != trace.Key.UID:
		return Other, live, nil
	case live.GetResourceVersion() == trace.ResourceVersion:
		return NotStored, live, nil
	}
	leaves, withheld := leavesOf(trace.Touched)
	switch {
	case !withheld && len(differing(leaves, trace.Touched.After, live.Object)) == 0:
		return Stored, live, nil
	case withheld || len(differing(leaves, trace.Touched.Before, live.Object)) == 0:
		return Overwritten, live, nil
	}
	return Contradicted, live, nil
}

// Contradiction is the error for a fate of that name.
func Contradiction(t touched.Touched, live *unstructured.Unstructured) error {
	return &DriftError{Fields: elsewhere(t, live)}
}
