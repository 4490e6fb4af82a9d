package factory

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// unheeded is what a run could not take into account although engines in the cluster
// do: exceptions, and what an engine is configured to leave alone.
type unheeded struct {
	forbidden int
	failed    []error
}

// leave goes on without such a thing. Few users may read all of it, so that a refusal
// is a warning; but it is told to a quiet run as well, and the summary counts it. That
// a server failed to answer leaves the run incomplete.
func (w *Factory) leave(err error) {
	err = fmt.Errorf("%w; evaluated as if there were none", err)
	if apierrors.IsForbidden(err) {
		fmt.Fprintf(w.Streams.ErrOut, "warning: %v\n", err)
		w.unheeded.forbidden++
		return
	}
	fmt.Fprintf(w.Streams.ErrOut, "error: %v\n", err)
	w.unheeded.failed = append(w.unheeded.failed, err)
}

// count has the run count what was left.
func (u unheeded) count(o *preview.Options) { o.Unheeded, o.Unknown = u.forbidden, u.failed }
