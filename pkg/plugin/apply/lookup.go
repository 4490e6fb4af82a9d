package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// PendingWrite is a request that was sent and may have been stored.
type PendingWrite struct {
	Key             engine.ObjectKey
	ResourceVersion string // that the request was guarded with
	// Touched is what the request changes: before it, and as the dry run answered.
	Touched diff.Partial
}

// WriteOutcome is what became of a request whose answer was lost.
type WriteOutcome string

// The outcomes.
const (
	// WriteStored: the fields are as the server would have made them.
	WriteStored WriteOutcome = "stored"
	// WriteNotStored: the object is the very version that the request was made for.
	WriteNotStored WriteOutcome = "not-stored"
	// WriteOverwritten: another client has written the object, and its fields are as
	// before the request, or cannot be compared because they hold secrets. Whether the
	// change is still to be made has to be evaluated.
	WriteOverwritten WriteOutcome = "overwritten"
	// WriteContradicted: another client has written the fields.
	WriteContradicted WriteOutcome = "contradicted"
	// WriteGone and WriteReplaced: the object does not exist any more, or another one
	// has its name.
	WriteGone     WriteOutcome = "gone"
	WriteReplaced WriteOutcome = "other"
)

// LookUp looks up the outcome of a request whose answer was lost, and returns the
// object as it is now.
func (w *Writer) LookUp(ctx context.Context, p PendingWrite) (WriteOutcome, *unstructured.Unstructured, error) {
	live, err := w.Server.Get(ctx, readable(p.Key))
	switch {
	case apierrors.IsNotFound(err):
		return WriteGone, nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("looking up the outcome of a write whose answer was lost: %w", err)
	case p.Key.UID != "" && live.GetUID() != p.Key.UID:
		return WriteReplaced, live, nil
	case live.GetResourceVersion() == p.ResourceVersion:
		return WriteNotStored, live, nil
	}
	withheld := p.Touched.Withholds()
	switch {
	case !withheld && len(p.Touched.Drift(live.Object)) == 0:
		return WriteStored, live, nil
	case withheld || len(p.Touched.DriftBefore(live.Object)) == 0:
		return WriteOverwritten, live, nil
	}
	return WriteContradicted, live, nil
}
