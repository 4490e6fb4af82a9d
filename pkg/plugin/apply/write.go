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

// endpointWrite is the write to one endpoint of an object.
type endpointWrite struct {
	*Writer
	now       *Verified // what is sent
	first     *Verified // what was agreed to
	uncertain bool      // a request whose answer was lost may have been stored
	conflicts int       // how often another writer was faster
	result    Result
}

// write sends until the outcome is final, and records it.
func (t *endpointWrite) write(ctx context.Context) (Result, error) {
	result, err := t.run(ctx)
	if err == nil && t.Journal != nil {
		err = t.Journal.Result(t.now, &result)
	}
	return result, err
}

func (t *endpointWrite) run(ctx context.Context) (Result, error) {
	for waits := conflictBackoff(); ; {
		t.result = t.now.Result
		t.result.Retries = t.first.Retries + t.conflicts
		err := t.store(ctx)
		if err == nil {
			return t.result, nil
		}
		if err := t.result.fail(err); !errors.Is(err, errStale) {
			return t.result, err
		}
		if waits.Steps == 0 {
			t.result.because(Failed, &BusyError{Attempts: t.result.Retries + 1})
			return t.result, nil
		}
		if err := sleep(ctx, waits.Step()); err != nil {
			return t.result, err
		}
		t.conflicts++
		if done, err := t.verifyAgain(ctx); done || err != nil {
			return t.result, err
		}
	}
}

// store sends the request until its outcome is known.
func (t *endpointWrite) store(ctx context.Context) error {
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
		case t.uncertain && (isStale(err) || isUnfit(t.now.patch, err)): // perhaps after our own write
			err = errStale
		case t.stale(ctx, t.now, err):
			return errStale
		case !cluster.Unsettled(ctx, err):
			return err
		}
		t.uncertain = true
		giveUp := attempts.Wait(ctx, err)
		if done, err := t.lookUp(ctx); done || err != nil {
			return err
		}
		if giveUp != nil {
			return giveUp
		}
	}
}

// send waits for a slot and sends the request once.
func (t *endpointWrite) send(ctx context.Context) (*unstructured.Unstructured, error) {
	release, err := t.Slots.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return t.Server.Patch(ctx, t.now.Key, t.now.patch)
}

// stale reports whether a request was refused because the object has changed since
// it was read. The server answers 409 or 404 then, but applies a JSON patch first:
// an object that does not fit the patch may be one that has changed.
func (w *Writer) stale(ctx context.Context, v *Verified, err error) bool {
	if !isUnfit(v.patch, err) {
		return isStale(err)
	}
	live, err := w.Server.Get(ctx, readable(v.Key))
	return apierrors.IsNotFound(err) || err == nil && live.GetResourceVersion() != v.resourceVersion
}

// isUnfit reports whether a JSON patch was refused because it does not fit the
// object, or the result is invalid.
func isUnfit(p cluster.Patch, err error) bool {
	return p.Type == types.JSONPatchType && apierrors.IsInvalid(err)
}

// applied records the server's answer to the write.
func (t *endpointWrite) applied(answer *unstructured.Unstructured) {
	t.result.Outcome, t.result.After = Applied, answer
	t.result.Drift = t.now.drift(answer.Object)
	effect := t.now.Touched
	if len(t.now.effect.Fields) > 0 {
		effect = t.now.effect
	}
	t.result.Touched = effect.Answered(answer)
}

// lookUp looks up the outcome of a request whose answer was lost. Done means that
// there is a result; otherwise the request was not stored and may be sent again: its
// guard keeps it from being stored twice.
func (t *endpointWrite) lookUp(ctx context.Context) (done bool, err error) {
	pending := PendingWrite{Key: t.now.Key, ResourceVersion: t.now.resourceVersion, Touched: t.now.Answered()}
	outcome, live, err := t.LookUp(ctx, pending)
	if err != nil {
		return false, err
	}
	switch outcome {
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

// verifyAgain verifies the change again, because another writer was faster. Done
// means that there is a result: the change is a different one now, or needless.
func (t *endpointWrite) verifyAgain(ctx context.Context) (done bool, err error) {
	next, err := t.verify(ctx, t.now.Key, t.now.want)
	if err != nil {
		return true, err
	}
	next.JournalIndex, next.status, next.Retries, next.Secrets = t.first.JournalIndex, t.first.status, t.first.Retries, t.first.Secrets
	t.result = next.Result
	t.result.Retries += t.conflicts
	switch {
	case next.Outcome == Unchanged && t.uncertain:
		// Either the request whose answer was lost was stored, or another client wrote
		// the same: the object is as wanted.
		t.result.Outcome, t.result.Found, t.result.Method = Applied, true, t.first.Method
		t.result.Touched = t.first.Answered()
		return true, nil
	case next.Outcome != Planned:
		return true, nil
	}
	if other := t.first.Touched.Unlike(next.Touched); len(other) > 0 {
		t.result.because(Drifted, &DriftError{Fields: other})
		return true, nil
	}
	if !slices.Equal(t.first.losses().Paths(), next.losses().Paths()) {
		if yes, err := t.ConfirmLoss(ctx, next); !yes || err != nil {
			t.result.Outcome, t.result.Err = next.Outcome, next.Err
			return true, err
		}
	}
	t.first, t.now = next, next
	return false, nil
}
