package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// maxConnections is how many connections one request may use. A server that ends one with GOAWAY says that it has not
// looked at the request, and net/http sends it over the next one, however often. client-go keeps 25 idle ones, all of
// which may have ended.
const maxConnections = 30

// connections gives up a request, with a *SlowError, that uses more than maxConnections.
type connections struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (t connections) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	var used atomic.Int64
	trace := &httptrace.ClientTrace{GetConn: func(string) { // GotConn misses a connection that ends before it is used
		if used.Add(1) > maxConnections {
			cancel(&SlowError{
				fmt.Sprintf("the answer of %s to a %s request", server(r.URL), r.Method),
				fmt.Sprintf("%d connections ended without it; look for the reason in the server, or in a proxy before it, and try again", maxConnections),
			})
		}
	}}
	response, err := t.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		var slow *SlowError
		if errors.As(context.Cause(ctx), &slow) {
			err = slow
		}
		cancel(context.Canceled)
		return nil, err
	}
	response.Body = endingBody{response.Body, cancel}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t connections) WrappedRoundTripper() http.RoundTripper { return t.next }

// endingBody ends the context of its request when it is closed.
type endingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close ends the request, too.
func (b endingBody) Close() error {
	defer b.cancel(context.Canceled)
	return b.ReadCloser.Close()
}
