package cluster

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
)

// RetryPolicy says how often and how patiently a call is made again. The zero value is
// ready for use.
type RetryPolicy struct {
	// Tries is how often a call is made at the most; 0 stands for ten times, which
	// takes about half a minute.
	Tries int
	// Sleep waits, or ends early with the context's error; nil is the real clock.
	Sleep func(context.Context, time.Duration) error
	// Jitter is in [0, 1); nil is random. Those who were sent away together must
	// not come back together.
	Jitter func() float64
}

// How patient a Policy is, unless the server asks for more. A server that asks for
// more than longestWait is not going to answer this run.
const (
	maxTries    = 10
	firstWait   = 50 * time.Millisecond
	maxWait     = 5 * time.Second
	longestWait = time.Minute
)

// Do calls until it succeeds, fails in a way that waiting does not mend, or has
// been tried often enough. The error is that of the last call, or of a context
// that ended meanwhile.
func (p RetryPolicy) Do(ctx context.Context, call func() error) error {
	for tries := p.Start(); ; {
		err := call()
		if err == nil || !transient(ctx, err) {
			return err
		}
		if wait := tries.Wait(ctx, err); wait != nil {
			return wait
		}
	}
}

// Start counts the tries of one call, for whoever makes it without Do.
func (p RetryPolicy) Start() *Tries { return &Tries{policy: p, next: firstWait} }

// Pause lets time pass. The error is that of a context that ended meanwhile.
func (p RetryPolicy) Pause(ctx context.Context, d time.Duration) error {
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

// Tries counts the tries of one call.
type Tries struct {
	policy RetryPolicy
	made   int
	next   time.Duration
}

// Wait lets time pass before the next try, the longer the more there were, and as
// long as the server asks for. It returns the error of the last try when there is
// to be none, or that of a context that ended meanwhile.
func (t *Tries) Wait(ctx context.Context, err error) error {
	t.made++
	asked := retryAfter(err)
	if t.made >= cmp.Or(t.policy.Tries, maxTries) || asked > longestWait {
		return err
	}
	jitter := rand.Float64
	if t.policy.Jitter != nil {
		jitter = t.policy.Jitter
	}
	d := t.next/2 + time.Duration(jitter()*float64(t.next)/2)
	t.next = min(2*t.next, maxWait)
	return t.policy.Pause(ctx, asked+d)
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
	return Uncertain(ctx, err) || ctx.Err() == nil && apierrors.IsTooManyRequests(err)
}

// Uncertain tells whether it is open what became of a request: no answer came,
// or one that does not come from where objects are stored.
func Uncertain(ctx context.Context, err error) bool {
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
