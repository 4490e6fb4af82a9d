package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
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
		err = Reason(ctx, err)
		cancel(context.Canceled)
		return nil, err
	}
	response.Status = engine.FirstWords(response.Status, maxStatus)
	response.Body = endingBody{response.Body, ctx, func() { cancel(context.Canceled) }}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t connections) WrappedRoundTripper() http.RoundTripper { return t.next }

// endingBody ends the context of its request when it is closed.
type endingBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel func()
}

// Read says why it fails.
func (b endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, Reason(b.ctx, err)
	}
	return n, err
}

// Close ends the request, too.
func (b endingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// maxStatus is how much is kept of the text of a status, which may be as long as the header of an answer.
const maxStatus = 300

// Reason returns the *SlowError that ended the context of a request, or its own error with a text that can be kept
// and shown for many objects: clients quote what a server sends.
func Reason(ctx context.Context, err error) error {
	var slow *SlowError
	if errors.As(context.Cause(ctx), &slow) {
		return slow
	}
	if text := err.Error(); len(text) > maxMessage {
		return errors.New(firstWords(text)) // nothing that is typed is as long
	}
	return err
}
