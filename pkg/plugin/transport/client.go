package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"
)

// NewClient returns a client without credentials and cookies, which follows no redirect to another
// server and keeps no connection open. It trusts roots, those of the system if they are nil; a
// request and the reading of its answer may take no longer than the timeout, and a bounded number of
// connections.
func NewClient(roots *x509.CertPool, timeout time.Duration) *http.Client {
	below := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}
	return &http.Client{Transport: Redirects{}.Bound(timed{connections{below}, timeout})}
}

// timed gives a request up, with the redirects that it leads to and the reading of its answer, with a
// *SlowError when a time is over.
type timed struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip sends the request.
func (t timed) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline := time.Now().Add(t.timeout)
	if r.Response != nil { // it was redirected: the time began with the first request
		deadline, _ = r.Response.Request.Context().Deadline()
	}
	ctx, cancel := context.WithDeadlineCause(r.Context(), deadline, &SlowError{describe(r), fmt.Sprintf("it takes longer than %s", t.timeout)})
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		err = Reason(ctx, err)
		cancel()
		return nil, err
	}
	response.Body = endingBody{response.Body, ctx, cancel}
	return response, nil
}
