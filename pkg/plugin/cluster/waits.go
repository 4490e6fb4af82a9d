package cluster

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	flowcontrolapi "k8s.io/api/flowcontrol/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"
)

// pace limits the requests of a client as its options say, and reports how long each request waits, because of
// this limit or a Retry-After of the server.
//
// Without a limit in the options, a server that has API Priority and Fairness sets the pace: it divides what it
// can do among its users by itself, and says so in each answer. Any other one is asked 50 times a second.
func pace(config *rest.Config, o Options) {
	config.QPS, config.Burst = cmp.Or(o.QPS, defaultQPS), cmp.Or(o.Burst, defaultBurst)
	p := &limiter{waiting: o.Waiting}
	if p.waiting == nil {
		p.waiting = func(time.Time, time.Time) {}
	}
	if config.QPS > 0 { // or else there is no limit
		p.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
		config.RateLimiter = p
	}
	config.WrapTransport = transport.Wrappers(func(next http.RoundTripper) http.RoundTripper {
		return &paceTransport{next, p, o.QPS == 0 && o.Burst == 0}
	}, config.WrapTransport)
}

// limiter is client-go's own limiter, which does not report its waits.
type limiter struct {
	flowcontrol.RateLimiter
	waiting func(from, to time.Time)
	fair    atomic.Bool // the server sets the pace
}

// Wait implements flowcontrol.RateLimiter.
func (l *limiter) Wait(ctx context.Context) error {
	if l.fair.Load() {
		return ctx.Err()
	}
	start := time.Now()
	err := l.RateLimiter.Wait(ctx)
	l.waiting(start, time.Now())
	return err
}

// paceTransport sees the answers after which Retry or client-go waits.
type paceTransport struct {
	next    http.RoundTripper
	limiter *limiter
	follows bool // the server, if it sets a pace
}

// RoundTrip implements http.RoundTripper.
func (t *paceTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	if t.follows && response.Header.Get(flowcontrolapi.ResponseHeaderMatchedFlowSchemaUID) != "" {
		t.limiter.fair.Store(true)
	}
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return response, nil
	}
	if seconds, bad := strconv.Atoi(response.Header.Get("Retry-After")); bad == nil && seconds > 0 {
		now := time.Now()
		t.limiter.waiting(now, now.Add(time.Duration(seconds)*time.Second))
	}
	return response, nil
}
