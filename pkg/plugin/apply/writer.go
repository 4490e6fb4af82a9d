package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
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

// Writer writes changes, one object at a time. It holds no state of its own and
// may be used by several goroutines if its fields may.
type Writer struct {
	Server Server
	// Manager is the field manager that the writes are recorded under.
	Manager string
	// ForceConflicts takes over fields whose owners would set them back.
	ForceConflicts bool
	DryRun         DryRun
	// HasStatus tells whether a kind has a /status endpoint, to which the part of
	// a change below .status is then sent by itself. With nil nothing is known of
	// any; the server ignores such a part, and the result says so.
	HasStatus func(context.Context, schema.GroupVersionKind) (bool, error)
	// Confirm asks the user. With nil, data is never lost, and an object that has
	// changed meanwhile is written as its change is evaluated then.
	Confirm func(ctx context.Context, planned Result, q Question) (bool, error)
}

// backoff is the wait between tries, 5 after the first one. The jitter is wide
// because those who collided have waited equally long.
func backoff() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Millisecond, Factor: 2, Jitter: 3, Steps: 5}
}

// Apply makes the object with the key be as wanted. A key with a UID means that
// very object and no other of its name; a key with a Subresource means that
// endpoint alone.
//
// What goes wrong with the object is the Result's; the error ends the run: a
// cancelled context, a lost connection, an error of want other than an
// *ObjectError.
func (w *Writer) Apply(ctx context.Context, key engine.ObjectKey, want Want) (Result, error) {
	if key.Subresource != "" {
		return w.write(ctx, key, want)
	}
	split := &statusSplit{want: want, hasStatus: w.HasStatus}
	result, err := w.write(ctx, key, split.main)
	if err != nil || !split.found || !result.Outcome.Reached() {
		return result, err
	}
	key.Subresource, key.UID = "status", result.Before.GetUID()
	status, err := w.write(ctx, key, split.status)
	if result.Outcome == Unchanged {
		return status, err
	}
	result.Status = &status
	return result, err
}

// write tries until nobody else is faster.
func (w *Writer) write(ctx context.Context, key engine.ObjectKey, want Want) (Result, error) {
	t := try{Writer: w, key: key, want: want}
	for waits := backoff(); ; {
		result, stale, err := t.run(ctx)
		result.Retries = t.retries
		if err != nil || !stale {
			return result, err
		}
		if waits.Steps == 0 {
			return t.failed(&BusyError{Tries: t.retries + 1}), nil
		}
		t.retries++
		if err := sleep(ctx, waits.Step()); err != nil {
			return result, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
