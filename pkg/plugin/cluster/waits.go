package cluster

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"
)

// ReportWaits makes a client report how long each request waits, because of the rate
// limit in the config or a Retry-After of the server. A nil function changes nothing.
func ReportWaits(config *rest.Config, waiting func(time.Duration)) {
	if waiting == nil {
		return
	}
	if config.QPS > 0 { // or else there is no limit
		config.RateLimiter = &reportingLimiter{flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst), waiting}
	}
	// Innermost: RetryReads hands on the last of its answers alone.
	config.WrapTransport = transport.Wrappers(func(next http.RoundTripper) http.RoundTripper {
		return &reportingTransport{next, waiting}
	}, config.WrapTransport)
}

// reportingLimiter is client-go's own limiter, which does not report its waits.
type reportingLimiter struct {
	flowcontrol.RateLimiter
	waiting func(time.Duration)
}

// Wait implements flowcontrol.RateLimiter.
func (l *reportingLimiter) Wait(ctx context.Context) error {
	start := time.Now()
	err := l.RateLimiter.Wait(ctx)
	l.waiting(time.Since(start))
	return err
}

// reportingTransport sees the answers after which RetryReads, Retry or client-go waits.
type reportingTransport struct {
	next    http.RoundTripper
	waiting func(time.Duration)
}

// RoundTrip implements http.RoundTripper.
func (t *reportingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		return response, err
	}
	if seconds, bad := strconv.Atoi(response.Header.Get("Retry-After")); bad == nil && seconds > 0 {
		t.waiting(time.Duration(seconds) * time.Second)
	}
	return response, nil
}
