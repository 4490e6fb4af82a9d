package apply

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// writing is one endpoint's write, and what is remembered of its tries.
type writing struct {
	*Writer
	now     *Verified // what is sent
	first   *Verified // what was agreed to
	unknown bool      // the answer to a request was lost, so that it may have been stored
	tries   int       // that another writer was faster than
	result  Result
}

// write sends until the server has answered for good.
func (t *writing) write(ctx context.Context) (Result, error) {
	result, err := t.run(ctx)
	if err == nil && t.Journal != nil {
		err = t.Journal.Result(t.now, &result)
	}
	return result, err
}

func (t *writing) run(ctx context.Context) (Result, error) {
	for waits := conflictBackoff(); ; {
		t.result = t.now.Result
		t.result.Retries = t.first.Retries + t.tries
		err := t.store(ctx)
		if err == nil {
			return t.result, nil
		}
		if err := t.result.fail(err); !errors.Is(err, errStale) {
			return t.result, err
		}
		if waits.Steps == 0 {
			t.result.because(Failed, &BusyError{Tries: t.result.Retries + 1})
			return t.result, nil
		}
		if err := sleep(ctx, waits.Step()); err != nil {
			return t.result, err
		}
		t.tries++
		if done, err := t.again(ctx); done || err != nil {
			return t.result, err
		}
	}
}

// store sends the request until it is known what became of it.
func (t *writing) store(ctx context.Context) error {
	if t.Journal != nil {
		if err := t.Journal.Attempt(t.now); err != nil {
			return err
		}
	}
	for attempts := cluster.NewAttempts(t.Retry); ; {
		answer, err := t.send(ctx)
		switch {
		case err == nil:
			t.applied(answer)
			return nil
		case t.unknown && (isStale(err) || isUnfit(t.now.patch, err)): // perhaps because of our own write
			err = errStale
		case t.stale(ctx, t.now, err):
			return errStale
		case !cluster.Uncertain(ctx, err):
			return err
		}
		t.unknown = true
		giveUp := attempts.Wait(ctx, err)
		if done, err := t.find(ctx); done || err != nil {
			return err
		}
		if giveUp != nil {
			return giveUp
		}
	}
}

// send waits for its turn and sends the request once.
func (t *writing) send(ctx context.Context) (*unstructured.Unstructured, error) {
	release, err := t.Slots.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return t.Server.Patch(ctx, t.now.Key, t.now.patch)
}

// stale tells whether a request was refused because the object is not the one any
// more that it was made for. The server says so by a 409 or 404, but works out a
// JSON patch first: what it cannot patch may be an object that has changed.
func (w *Writer) stale(ctx context.Context, v *Verified, err error) bool {
	if !isUnfit(v.patch, err) {
		return isStale(err)
	}
	live, err := w.Server.Get(ctx, readable(v.Key))
	return apierrors.IsNotFound(err) || err == nil && live.GetResourceVersion() != v.resourceVersion
}

// isUnfit tells whether a JSON patch was refused with the object, or the patch,
// being such that nothing can be stored.
func isUnfit(p cluster.Patch, err error) bool {
	return p.Type == types.JSONPatchType && apierrors.IsInvalid(err)
}

// applied takes the server's answer to the write.
func (t *writing) applied(answer *unstructured.Unstructured) {
	t.result.Outcome, t.result.After = Applied, answer
	t.result.Drift = t.now.drift(answer.Object)
	effect := t.now.Touched
	if len(t.now.effect.Fields) > 0 {
		effect = t.now.effect
	}
	t.result.Touched = effect.Answered(answer)
}

// find looks for what became of a request whose answer was lost. Done means that
// there is a result; otherwise the request was not stored and may be sent again,
// its guard keeps it from being stored twice.
func (t *writing) find(ctx context.Context) (done bool, err error) {
	trace := PendingWrite{Key: t.now.Key, ResourceVersion: t.now.resourceVersion, Touched: t.now.Answered()}
	fate, live, err := t.LookUp(ctx, trace)
	if err != nil {
		return false, err
	}
	switch fate {
	case WriteNotStored:
		return false, nil
	case WriteStored:
		t.applied(live)
		t.result.Found = true
	case WriteOverwritten:
		return false, errStale
	case WriteGone:
		t.result.Outcome = Deleted
	case WriteReplaced:
		t.result.Outcome = Replaced
	case WriteContradicted:
		t.result.because(Drifted, &DriftError{Fields: t.now.Answered().Drift(live.Object)})
	}
	return true, nil
}

// again verifies the change anew, because somebody else has written the object.
// Done means that this is the end: another change comes out now, or none.
func (t *writing) again(ctx context.Context) (done bool, err error) {
	next, err := t.verify(ctx, t.now.Key, t.now.want)
	if err != nil {
		return true, err
	}
	next.JournalIndex, next.status, next.Retries = t.first.JournalIndex, t.first.status, t.first.Retries
	t.result = next.Result
	t.result.Retries += t.tries
	switch {
	case next.Outcome == Unchanged && t.unknown:
		// The request whose answer was lost may have been stored, or somebody else
		// wrote the same: either way the object is as it was to become.
		t.result.Outcome, t.result.Found, t.result.Method = Applied, true, t.first.Method
		t.result.Touched = t.first.Answered()
		return true, nil
	case next.Outcome != Planned:
		return true, nil
	}
	other := t.first.Touched.Unlike(next.Touched)
	yes := len(other) == 0 && slices.Equal(t.first.loses().Paths(), next.loses().Paths())
	if !yes && t.Confirm != nil {
		if yes, err = t.Confirm(ctx, t.result, ChangedMeanwhile); err != nil {
			return true, err
		}
	}
	if !yes {
		t.result.because(Drifted, &DriftError{Fields: other})
		return true, nil
	}
	t.first, t.now = next, next
	return false, nil
}
