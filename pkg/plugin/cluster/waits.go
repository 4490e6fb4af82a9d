package cluster

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// ReportWaits tells how long the requests of a client wait, for its own limit or
// because the server asks for it; it makes none wait longer. The limit has to be
// in the config already. Nil tells nobody.
func ReportWaits(config *rest.Config, waiting func(time.Duration)) {
	if waiting == nil {
		return
	}
	if config.QPS > 0 { // or else there is no limit
		config.RateLimiter = &tellingLimiter{flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst), waiting}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tellingTransport{next, waiting} })
}

// tellingLimiter is client-go's own limiter, which keeps to itself how long it waits.
type tellingLimiter struct {
	flowcontrol.RateLimiter
	waiting func(time.Duration)
}

// Wait implements flowcontrol.RateLimiter.
func (l *tellingLimiter) Wait(ctx context.Context) error {
	start := time.Now()
	err := l.RateLimiter.Wait(ctx)
	l.waiting(time.Since(start))
	return err
}

// tellingTransport sees the answers after which client-go waits and tries again.
type tellingTransport struct {
	next    http.RoundTripper
	waiting func(time.Duration)
}

// RoundTrip implements http.RoundTripper.
func (t *tellingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return response, err
	}
	if seconds, bad := strconv.Atoi(response.Header.Get("Retry-After")); bad == nil && seconds > 0 {
		t.waiting(time.Duration(seconds) * time.Second)
	}
	return response, nil
}
