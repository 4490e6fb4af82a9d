package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// PendingWrite is what is known of a request that may have been stored.
type PendingWrite struct {
	Key             engine.ObjectKey
	ResourceVersion string // that the request was guarded with
	// Touched is the object before the request, and as the dry run answered.
	Touched diff.Partial
}

// WriteOutcome is what became of a request whose answer was lost.
type WriteOutcome string

// The fates.
const (
	// WriteStored: the fields are as the server would have made them.
	WriteStored WriteOutcome = "stored"
	// WriteNotStored: the object is the very version that the request was made for.
	WriteNotStored WriteOutcome = "not-stored"
	// WriteOverwritten: somebody else has written the object, and the fields are as
	// they were before, or it cannot be told because they hold secrets. Whether
	// the change is still to be made has to be evaluated.
	WriteOverwritten WriteOutcome = "overwritten"
	// WriteContradicted: somebody else has written the fields.
	WriteContradicted WriteOutcome = "contradicted"
	// WriteGone and Other: the object does not exist any more, or another one has its name.
	WriteGone     WriteOutcome = "gone"
	WriteReplaced WriteOutcome = "other"
)

// LookUp looks up what became of a request whose answer was lost, and returns the
// object as it is now.
func (w *Writer) LookUp(ctx context.Context, trace PendingWrite) (WriteOutcome, *unstructured.Unstructured, error) {
	live, err := w.Server.Get(ctx, readable(trace.Key))
	switch {
	case apierrors.IsNotFound(err):
		return WriteGone, nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("looking for the outcome of a write whose answer was lost: %w", err)
	case trace.Key.UID != "" && live.GetUID() != trace.Key.UID:
		return WriteReplaced, live, nil
	case live.GetResourceVersion() == trace.ResourceVersion:
		return WriteNotStored, live, nil
	}
	withheld := trace.Touched.Withholds()
	switch {
	case !withheld && len(trace.Touched.Drift(live.Object)) == 0:
		return WriteStored, live, nil
	case withheld || len(trace.Touched.DriftBefore(live.Object)) == 0:
		return WriteOverwritten, live, nil
	}
	return WriteContradicted, live, nil
}

// contradiction is the error for a fate of that name.
func contradiction(t diff.Partial, live *unstructured.Unstructured) error {
	return &DriftError{Fields: t.Drift(live.Object)}
}
