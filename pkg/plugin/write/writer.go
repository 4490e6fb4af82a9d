package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// DryRun is kubectl's --dry-run value.
type DryRun string

// With DryRunClient only reads are sent, with DryRunServer nothing that the server stores.
const (
	DryRunNone   DryRun = "none"
	DryRunClient DryRun = "client"
	DryRunServer DryRun = "server"
)

// DefaultFieldManager is the default field manager of writes.
const DefaultFieldManager = "kubectl-mutate"

// Want returns the wanted object for the live one: live itself, which it must not modify, if there is nothing
// to change. It is called again if the object has changed in the meantime. The endpoint is
// request.StatusSubresource if only that part remains to be sent.
type Want func(ctx context.Context, live *unstructured.Unstructured, endpoint string) (
	*unstructured.Unstructured, error)

// Writer verifies and writes changes, one object at a time. It is stateless, and safe for concurrent use if
// its fields are.
type Writer struct {
	Server Server
	// Manager is the field manager of the writes.
	Manager string
	journal.Allowed
	// PatchOnly is the reason not to use server-side apply; zero if it may be used.
	PatchOnly request.Reason
	DryRun    DryRun
	// Patience limits how often a write is repeated after a lost response. The Server, which has it too, repeats
	// other requests.
	Patience *cluster.Patience
	// HasStatus reports whether a kind has a /status endpoint, which receives changes below .status. If nil,
	// they are sent with the others; the server may ignore them, and the result says so.
	HasStatus func(context.Context, schema.GroupVersionKind) (bool, error)
	// Confirm asks the user whether to write an object of which the server would drop live data that the change
	// keeps; nil answers no. It is called concurrently if Write is.
	Confirm func(ctx context.Context, planned Result) (bool, error)
	// Journal records every write before it is sent and after; nil: none. A write that cannot be recorded is not
	// sent.
	Journal *journal.Writer
	// Slots limit the writes in flight, so that further workers can wait for the journal; nil: no limit.
	Slots chan struct{}
	quiet bool // patches contain values derived from a Secret
}

// conflictBackoff is the wait after another writer was faster. Its jitter is wide because colliding writers
// have waited equally long.
func conflictBackoff() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Millisecond, Factor: 2, Jitter: 3, Steps: 5}
}

// Verify plans the request that makes an object as wanted, and sends it as a dry run. A key with a UID means
// only that object; a key with a Subresource only that endpoint. A listed object is not read again if the dry
// run shows that it is unchanged and can be written; if nil, the object is read.
//
// Failures of this object are in the Result; the error ends the run: a cancelled context, a lost connection,
// an error of want other than an *ObjectError.
func (w *Writer) Verify(ctx context.Context, key engine.ObjectKey, listed *unstructured.Unstructured,
	want Want,
) (*Verified, error) {
	if w.DryRun == DryRunClient { // it would not notice
		listed = nil
	}
	v, err := w.verifyParts(ctx, key, listed, want)
	switch {
	case listed == nil, err != nil:
		return v, err
	case v.Retries > 0: // it was read again
		v.Retries--
	case cluster.Cause(v.Err) != "": // not caused by the object
	case v.Outcome != Planned, v.Unverified != nil:
		return w.verifyParts(ctx, key, nil, want) // the current object shows the reason
	}
	return v, nil
}

// verifyParts verifies the change of the object, and then of its status if it has an endpoint.
func (w *Writer) verifyParts(ctx context.Context, key engine.ObjectKey, listed *unstructured.Unstructured,
	want Want,
) (*Verified, error) {
	if key.Subresource != "" {
		return w.verify(ctx, key, nil, want)
	}
	split := false // the change includes .status, which has an endpoint
	v, err := w.verify(ctx, key, listed, func(ctx context.Context, live *unstructured.Unstructured, _ string) (
		*unstructured.Unstructured, error,
	) {
		after, err := want(ctx, live, "")
		if err != nil {
			return nil, err
		}
		object, status := request.SplitStatus(live, after)
		if split = false; status == nil || w.HasStatus == nil {
			return after, nil
		}
		if split, err = w.HasStatus(ctx, live.GroupVersionKind()); err != nil || !split {
			return after, err
		}
		return object, nil
	})
	if err != nil || !split || !v.Outcome.Reached() {
		return v, err
	}
	key.Subresource, key.UID = request.StatusSubresource, v.Key.UID
	status, err := w.verify(ctx, key, nil, func(ctx context.Context, live *unstructured.Unstructured, _ string) (
		*unstructured.Unstructured, error,
	) {
		after, err := want(ctx, live, request.StatusSubresource)
		if err != nil {
			return nil, err
		}
		if _, status := request.SplitStatus(live, after); status != nil {
			return status, nil
		}
		return live, nil
	})
	if v.Outcome == Unchanged {
		return status, err
	}
	v.status = status
	return v, err
}

// verify repeats the verification as long as another writer is faster.
func (w *Writer) verify(ctx context.Context, key engine.ObjectKey, listed *unstructured.Unstructured,
	want Want,
) (*Verified, error) {
	for waits := conflictBackoff(); ; listed = nil {
		v, err := w.verifyOnce(ctx, key, listed, want)
		v.Retries = conflictBackoff().Steps - waits.Steps
		if !errors.Is(err, errStale) {
			return v, err
		}
		if waits.Steps == 0 {
			v.because(Failed, &BusyError{Attempts: v.Retries + 1})
			return v, nil
		}
		if !cluster.Pause(ctx, waits.Step()) {
			return v, ctx.Err()
		}
		key.UID = v.Key.UID // this object, and not a new one of the same name
	}
}

// Write sends the verified request, once if the server answers and no other client has written the object.
// Otherwise the object is verified again, and written if the change is the same.
//
// As with Verify, an error ends the run; the outcome is then unknown.
func (w *Writer) Write(ctx context.Context, v *Verified) (Result, error) {
	t := endpointWrite{Writer: w, now: v, first: v}
	result, err := t.write(ctx)
	if err != nil || v.status == nil || !result.Outcome.Reached() {
		return result, err
	}
	status, err := w.writeStatus(ctx, v.status)
	result.Status = &status
	return result, err
}

// writeStatus verifies the part for /status again, since writing the other part created a new version.
func (w *Writer) writeStatus(ctx context.Context, v *Verified) (Result, error) {
	if v.Outcome != Planned {
		return v.Result, nil
	}
	t := endpointWrite{Writer: w, now: v, first: v}
	done, err := t.verifyAgain(ctx)
	switch {
	case err != nil:
		return t.result, err
	case done:
		return t.result, w.outcome(v, &t.result)
	}
	return t.write(ctx)
}

// ConfirmLoss asks before a write by which the server would drop live data: the confirmation of the run does
// not cover it. Without a yes the outcome is Declined.
func (w *Writer) ConfirmLoss(ctx context.Context, v *Verified) (yes bool, err error) {
	lost := v.losses()
	if len(lost) == 0 {
		return true, nil
	}
	if w.Confirm != nil {
		yes, err = w.Confirm(ctx, v.Result)
	}
	if !yes {
		v.because(Declined, fmt.Errorf("the server would drop %s, which the change means to keep; not written, because that needs a confirmation for this object", strings.Join(lost.Paths(), ", ")))
	}
	return yes, err
}

// Server is a Writer's view of an API server. Errors from the server are API status errors, as in
// k8s.io/apimachinery/pkg/api/errors; any other error ends the run.
type Server interface {
	// Get reads an object, or the subresource in the key, uncached and with its managedFields.
	Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error)
	// Patch patches the object, or the subresource in the key, with strict field validation.
	Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error)
	// Types returns the schema of a kind; nil if the server publishes none. Refresh reads it again.
	Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (managedfields.TypeConverter, error)
}

type endpointWrite struct {
	*Writer
	now       *Verified // the change to send
	first     *Verified // the confirmed change
	uncertain bool      // a request without a response may have been stored
	conflicts int       // how often another writer was faster
	result    Result
}

// write sends until the outcome is final, and records it.
func (t *endpointWrite) write(ctx context.Context) (Result, error) {
	result, err := t.run(ctx)
	if err == nil {
		err = t.outcome(t.now, &result)
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
		if !cluster.Pause(ctx, waits.Step()) {
			return t.result, ctx.Err()
		}
		t.conflicts++
		if done, err := t.verifyAgain(ctx); done || err != nil {
			return t.result, err
		}
	}
}

// store sends the request until its outcome is known.
func (t *endpointWrite) store(ctx context.Context) error {
	if err := t.attempt(t.now); err != nil {
		return err
	}
	for attempts := cluster.NewAttempts(t.Patience); ; {
		answer, err := t.send(ctx)
		switch {
		case err == nil:
			attempts.Succeeded()
			t.applied(answer)
			return nil
		case t.uncertain && (isStale(err) || isUnfit(t.now.patch, err)): // perhaps after this run's own write
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

// send waits for a slot and sends the request once. A write creates a new version: a response with the
// version that was read does not prove that it was stored.
func (t *endpointWrite) send(ctx context.Context) (*unstructured.Unstructured, error) {
	if t.Slots != nil {
		select {
		case t.Slots <- struct{}{}:
			defer func() { <-t.Slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	answer, err := t.Server.Patch(ctx, t.now.Key, t.now.patch)
	if err == nil && answer.GetResourceVersion() == t.now.Version {
		err = &cluster.AnswerError{Err: fmt.Errorf("the server answers the write of %s with the object as it was", t.now.Key)}
	}
	return answer, err
}

// stale reports whether a request was rejected because the object has changed since it was read. The server
// answers 409 or 404, but applies a JSON patch first: if it does not fit, the object may have changed.
func (w *Writer) stale(ctx context.Context, v *Verified, err error) bool {
	if !isUnfit(v.patch, err) {
		return isStale(err)
	}
	live, err := w.Server.Get(ctx, readable(v.Key))
	return apierrors.IsNotFound(err) || err == nil && live.GetResourceVersion() != v.Version
}

// isUnfit reports whether a JSON patch was rejected because it does not fit the object, or the result is
// invalid.
func isUnfit(p cluster.Patch, err error) bool {
	return p.Type == types.JSONPatchType && apierrors.IsInvalid(err)
}

// applied records the server's response to the write.
func (t *endpointWrite) applied(answer *unstructured.Unstructured) {
	t.result.Outcome, t.result.After = Applied, answer
	t.result.Drift = t.now.drift(answer.Object)
	effect := t.now.Touched
	if len(t.now.effect.Fields) > 0 {
		effect = t.now.effect
	}
	t.result.Touched = effect.Answered(answer)
}

// look looks up the outcome of a request without a response. done reports a result; otherwise the request was
// not stored and may be sent again: its guard prevents a second write.
func (t *endpointWrite) look(ctx context.Context) (done bool, err error) {
	outcome, live, err := t.lookUp(ctx, t.now.Key, t.now.Version, t.now.Answered())
	if err != nil || outcome == NotTried {
		return false, err
	}
	switch t.result.Outcome = outcome; outcome {
	case Applied:
		t.applied(live)
		t.result.Found = true
	case Drifted:
		t.result.because(Drifted, driftError(t.now.Answered().Drift(live.Object)))
	}
	return true, nil
}

// verifyAgain verifies the change again after another writer was faster. done reports a result: the change is
// now different, or unnecessary.
func (t *endpointWrite) verifyAgain(ctx context.Context) (done bool, err error) {
	next, err := t.verify(ctx, t.now.Key, nil, t.now.want)
	if err != nil {
		return true, err
	}
	next.JournalIndex, next.status, next.Retries, next.Secrets = t.first.JournalIndex, t.first.status,
		t.first.Retries, t.first.Secrets
	t.result = next.Result
	t.result.Retries += t.conflicts
	switch {
	case next.Outcome == Unchanged && t.uncertain:
		// Either the request without a response was stored, or another client wrote the same: the object is as
		// wanted.
		t.result.Outcome, t.result.Found, t.result.Method = Applied, true, t.first.Method
		t.result.Touched = t.first.Answered()
		return true, nil
	case next.Outcome != Planned:
		return true, nil
	}
	if other := t.first.Touched.Unlike(next.Touched); len(other) > 0 {
		t.result.because(Drifted, driftError(other))
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

// lookUp looks up the outcome of a request without a response, and returns the current object: Applied if the
// fields are as the server would have made them, Deleted or Replaced if the object is gone, Drifted if
// another client has written the fields, and NotTried if the object still has the version of the request. The
// error is errStale if another client has written the object, and its fields are as before the request or
// cannot be compared because they are secret: evaluate whether to make the change.
func (w *Writer) lookUp(ctx context.Context, key engine.ObjectKey, resourceVersion string,
	touched diff.Partial,
) (Outcome, *unstructured.Unstructured, error) {
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
