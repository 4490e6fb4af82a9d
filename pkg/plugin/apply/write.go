package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
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
		if done, err := t.look(ctx); done || err != nil {
			return err
		}
		if giveUp != nil {
			return giveUp
		}
	}
}

// send waits for a slot and sends the request once.
func (t *endpointWrite) send(ctx context.Context) (*unstructured.Unstructured, error) {
	if t.Slots != nil {
		select {
		case t.Slots <- struct{}{}:
			defer func() { <-t.Slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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
	return apierrors.IsNotFound(err) || err == nil && live.GetResourceVersion() != v.ResourceVersion
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

// look looks up the outcome of a request whose answer was lost. Done means that
// there is a result; otherwise the request was not stored and may be sent again: its
// guard keeps it from being stored twice.
func (t *endpointWrite) look(ctx context.Context) (done bool, err error) {
	outcome, live, err := t.lookUp(ctx, t.now.Key, t.now.ResourceVersion, t.now.Answered())
	if err != nil || outcome == NotTried {
		return false, err
	}
	switch t.result.Outcome = outcome; outcome {
	case Applied:
		t.applied(live)
		t.result.Found = true
	case Drifted:
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

// lookUp looks up the outcome of a request whose answer was lost, and returns the object as it is now: Applied if the fields are as
// the server would have made them, Deleted or Replaced if the object is gone, Drifted if another client has written the fields, and
// NotTried if the object is the very version that the request was made for. The error is errStale if another client has written the
// object, and its fields are as before the request, or cannot be compared because they hold secrets: whether the change is still
// to be made has to be evaluated.
func (w *Writer) lookUp(ctx context.Context, key engine.ObjectKey, resourceVersion string, touched diff.Partial) (Outcome, *unstructured.Unstructured, error) {
	live, err := w.Server.Get(ctx, readable(key))
	switch {
	case apierrors.IsNotFound(err):
		return Deleted, nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("looking up the outcome of a write whose answer was lost: %w", err)
	case key.UID != "" && live.GetUID() != key.UID:
		return Replaced, live, nil
	case live.GetResourceVersion() == resourceVersion:
		return NotTried, live, nil
	}
	withheld := touched.Withholds()
	switch {
	case !withheld && len(touched.Drift(live.Object)) == 0:
		return Applied, live, nil
	case withheld || len(touched.DriftBefore(live.Object)) == 0:
		return "", live, errStale
	}
	return Drifted, live, nil
}
