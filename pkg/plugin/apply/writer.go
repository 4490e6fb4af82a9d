package apply

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// DryRun says how far a Writer goes; the words are kubectl's.
type DryRun string

// With DryRunClient nothing is sent but reads, with DryRunServer nothing that
// the server stores.
const (
	DryRunNone   DryRun = "none"
	DryRunClient DryRun = "client"
	DryRunServer DryRun = "server"
)

// DefaultFieldManager is the manager that writes are recorded under unless the
// user names another.
const DefaultFieldManager = "kubectl-mutate"

// Question is what a Writer asks about one object, beyond the yes that started
// the run.
type Question string

// The questions.
const (
	// LosesData: the server would drop live data that the change means to keep.
	LosesData Question = "loses-data"
	// ChangedMeanwhile: somebody wrote the object after it was shown, and the
	// change or who loses fields by it is another one now.
	ChangedMeanwhile Question = "changed-meanwhile"
)

// Want says how an object should be, given how it is. It answers live itself
// when nothing is to be changed, and must not modify it. It is asked again when
// the object has changed meanwhile.
type Want func(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error)

// Writer verifies and writes changes, one object at a time. It holds no state of
// its own and may be used by several goroutines if its fields may.
type Writer struct {
	Server Server
	// Manager is the field manager that the writes are recorded under.
	Manager string
	// ForceConflicts takes over fields whose owners would set them back, TakeFrom
	// those of these managers alone.
	ForceConflicts bool
	TakeFrom       []string
	// PatchOnly is why nothing is to be sent by server-side apply; zero where it
	// may be.
	PatchOnly request.Reason
	DryRun    DryRun
	// Retry is how often, and after which waits, a write is sent whose answer is lost;
	// without Steps it is cluster.DefaultBackoff. All else is repeated by the Server.
	Retry wait.Backoff
	// HasStatus tells whether a kind has a /status endpoint, to which the part of
	// a change below .status is then sent by itself. With nil nothing is known of
	// any; the server ignores such a part, and the result says so.
	HasStatus func(context.Context, schema.GroupVersionKind) (bool, error)
	// Confirm asks the user. With nil nobody says yes. It is called by several
	// goroutines if Write is.
	Confirm func(ctx context.Context, planned Result, q Question) (bool, error)
	// Journal is told of every write, before it is sent and after; nil keeps none.
	Journal Journal
	// Slots bound the writes that are on their way at once; nil leaves it to the caller.
	Slots Slots
}

// Journal keeps the record of writes. Its error ends the run: what cannot be
// recorded is not sent.
type Journal interface {
	// Attempt is called before a request is sent for the first time.
	Attempt(v *Verified) error
	// Result is called when it is known what became of it, with the last request
	// of which there was an attempt.
	Result(v *Verified, r *Result) error
}

// conflictBackoff is between attempts that lost against another writer. The jitter is
// wide because those who collided have waited equally long.
func conflictBackoff() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Millisecond, Factor: 2, Jitter: 3, Steps: 5}
}

// Verify finds the request that makes the object with the key be as wanted, and
// has the server rehearse it. A key with a UID means that very object and no
// other of its name; a key with a Subresource means that endpoint alone.
//
// What goes wrong with the object is in the Result; the error ends the run: a
// cancelled context, a lost connection, an error of want other than an
// *ObjectError.
func (w *Writer) Verify(ctx context.Context, key engine.ObjectKey, want Want) (*Verified, error) {
	if key.Subresource != "" {
		return w.verify(ctx, key, want)
	}
	split := &statusSplit{want: want, hasStatus: w.HasStatus}
	v, err := w.verify(ctx, key, split.object)
	if err != nil || !split.found || !v.Outcome.Reached() {
		return v, err
	}
	key.Subresource, key.UID = request.StatusSubresource, v.Key.UID
	status, err := w.verify(ctx, key, split.status)
	if v.Outcome == Unchanged {
		return status, err
	}
	v.status = status
	return v, err
}

// verify tries until nobody else is faster.
func (w *Writer) verify(ctx context.Context, key engine.ObjectKey, want Want) (*Verified, error) {
	for waits := conflictBackoff(); ; {
		v, err := w.verifyOnce(ctx, key, want)
		v.Retries = conflictBackoff().Steps - waits.Steps
		if !errors.Is(err, errStale) {
			return v, err
		}
		if waits.Steps == 0 {
			v.because(Failed, &BusyError{Tries: v.Retries + 1})
			return v, nil
		}
		if err := sleep(ctx, waits.Step()); err != nil {
			return v, err
		}
		key.UID = v.Key.UID // that very object, and no other that takes its name
	}
}

// Write sends what was verified: one request, if nobody else writes the object
// and the server answers. Otherwise it is verified again, and written if the same
// change comes out.
//
// The error ends the run, as that of Verify does. Where there is one, the result
// is unknown.
func (w *Writer) Write(ctx context.Context, v *Verified) (Result, error) {
	t := writing{Writer: w, now: v, first: v}
	result, err := t.write(ctx)
	if err != nil || v.status == nil || !result.Outcome.Reached() {
		return result, err
	}
	status, err := w.writeStatus(ctx, v.status)
	result.Status = &status
	return result, err
}

// writeStatus verifies the part for /status again: the write of the other part
// has made another version of the object.
func (w *Writer) writeStatus(ctx context.Context, v *Verified) (Result, error) {
	if v.Outcome != Planned {
		return v.Result, nil
	}
	t := writing{Writer: w, now: v, first: v}
	done, err := t.again(ctx)
	switch {
	case err != nil:
		return t.result, err
	case done && w.Journal != nil:
		return t.result, w.Journal.Result(v, &t.result)
	case done:
		return t.result, nil
	}
	return t.write(ctx)
}

// AgreeToLoss asks before a write by which the server would drop live data: the yes
// to a run does not cover that. Without a yes the outcome is Declined.
func (w *Writer) AgreeToLoss(ctx context.Context, v *Verified) (yes bool, err error) {
	lost := v.loses()
	if len(lost) == 0 {
		return true, nil
	}
	if w.Confirm != nil {
		yes, err = w.Confirm(ctx, v.Result, LosesData)
	}
	if !yes {
		v.because(Declined, &LossError{Lost: lost})
	}
	return yes, err
}

// mayTake tells whether the user wants fields of a manager taken over.
func (w *Writer) mayTake(manager string) bool {
	return w.ForceConflicts || slices.Contains(w.TakeFrom, manager)
}
