package apply

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Patience says how long a server that is busy, failing or out of reach is
// waited for. The zero value is ready for use.
type Patience struct {
	// Tries is how often a call is made at the most; 0 stands for ten times, which
	// takes about half a minute.
	Tries int
	// Sleep waits, or ends early with the context's error; nil is the real clock.
	Sleep func(context.Context, time.Duration) error
	// Jitter is in [0, 1); nil is random. Those who were sent away together must
	// not come back together.
	Jitter func() float64
}

// How patient it is, unless the server asks for more. A server that asks for more
// than longestWait is not going to answer this run.
const (
	maxTries    = 10
	firstWait   = 50 * time.Millisecond
	maxWait     = 5 * time.Second
	longestWait = time.Minute
)

// Do calls until it succeeds, fails in a way that waiting does not mend, or has
// been tried often enough.
func (p Patience) Do(ctx context.Context, call func() error) error {
	for tries := p.begin(); ; {
		err := call()
		if err == nil || !transient(ctx, err) {
			return err
		}
		if wait := tries.wait(ctx, err); wait != nil {
			return wait
		}
	}
}

func (p Patience) begin() *tries { return &tries{Patience: p, next: firstWait} }

func (p Patience) sleep(ctx context.Context, d time.Duration) error {
	if p.Sleep != nil {
		return p.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// tries counts the tries of one call.
type tries struct {
	Patience
	made int
	next time.Duration
}

// wait lets time pass before the next try. It returns the error of the last one
// when there is to be none.
func (t *tries) wait(ctx context.Context, err error) error {
	t.made++
	asked := retryAfter(err)
	if t.made >= cmp.Or(t.Tries, maxTries) || asked > longestWait {
		return err
	}
	jitter := rand.Float64
	if t.Jitter != nil {
		jitter = t.Jitter
	}
	d := t.next/2 + time.Duration(jitter()*float64(t.next)/2)
	t.next = min(2*t.next, maxWait)
	return t.sleep(ctx, asked+d)
}

// retryAfter is how long the server asks to be left alone.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// transient tells whether the same call may succeed later: the server is
// overloaded or broken, or the connection is. What it says about the request
// (not found, invalid, forbidden, conflict) stays as it is.
func transient(ctx context.Context, err error) bool {
	return uncertain(ctx, err) || ctx.Err() == nil && apierrors.IsTooManyRequests(err)
}

// uncertain tells whether it is open what became of a request: no answer came,
// or one that does not come from where objects are stored.
func uncertain(ctx context.Context, err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil || ctx.Err() != nil:
		return false
	case errors.As(err, &status):
		return status.Status().Code >= http.StatusInternalServerError
	}
	var network net.Error // a *url.Error is one
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// cannotApply knows the 500 by which a server says that it cannot merge what is
// applied, which no waiting mends: unlike those of its own troubles it comes
// without a reason (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters,
// ErrorToAPIStatus).
func cannotApply(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError &&
		status.Status().Reason == ""
}

// Patient is a Server that is waited for. It repeats what can be repeated:
// reads, dry runs, and writes that the server has not begun to work on (429).
// Any other write it leaves to a Writer, which looks the outcome up.
type Patient struct {
	Server
	Patience
}

// Get reads an object.
func (p Patient) Get(ctx context.Context, key engine.ObjectKey) (object *unstructured.Unstructured, err error) {
	err = p.Do(ctx, func() error {
		object, err = p.Server.Get(ctx, key)
		return err
	})
	return object, err
}

// Patch sends a patch.
func (p Patient) Patch(ctx context.Context, key engine.ObjectKey, patch Patch) (object *unstructured.Unstructured, err error) {
	var answer error
	err = p.Do(ctx, func() error {
		object, answer = p.Server.Patch(ctx, key, patch)
		final := patch.Type == types.ApplyPatchType && cannotApply(answer)
		if patch.DryRun && !final || apierrors.IsTooManyRequests(answer) {
			return answer
		}
		return nil
	})
	if err == nil {
		err = answer
	}
	return object, err
}

// Types knows the schema of a kind.
func (p Patient) Types(ctx context.Context, gvk schema.GroupVersionKind, refresh bool) (types managedfields.TypeConverter, err error) {
	err = p.Do(ctx, func() error {
		types, err = p.Server.Types(ctx, gvk, refresh)
		return err
	})
	return types, err
}
