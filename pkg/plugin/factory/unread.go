package factory

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// unreadInputs counts what a run could not read although engines in the cluster use it:
// exceptions, and the objects that an engine is configured to ignore.
type unreadInputs struct {
	forbidden int
	failed    []error
}

// leave reports an input that is not used. Few users may read all of them, so that a refusal is
// only a warning, which --quiet does not suppress and the summary counts. Any other error leaves
// the run incomplete.
func (f *Factory) leave(err error) {
	err = fmt.Errorf("%w; evaluated as if there were none", err)
	if apierrors.IsForbidden(err) {
		fmt.Fprintf(f.Streams.ErrOut, "warning: %v\n", err)
		f.unread.forbidden++
		return
	}
	fmt.Fprintf(f.Streams.ErrOut, "error: %v\n", err)
	f.unread.failed = append(f.unread.failed, err)
}

// count copies the counts to a run.
func (u unreadInputs) count(o *preview.Options) {
	o.ForbiddenInputs, o.UnreadInputs = u.forbidden, u.failed
}
