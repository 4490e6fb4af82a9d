package transport

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// Total bounds all answers together to requests that Counts picks.
type Total struct {
	Counts func(r *http.Request) bool
	// What names the answers in errors: "what the server says about its API".
	What     string
	Requests int64 // how many are sent
	Decoded  int64 // bytes that the bodies may take when they are decoded, as DecodedSize counts

	requests, decoded atomic.Int64
}

// Bound wraps a transport. What exceeds the total is a *SizeError.
func (t *Total) Bound(next http.RoundTripper) http.RoundTripper { return totalTransport{t, next} }

type totalTransport struct {
	*Total
	next http.RoundTripper
}

// RoundTrip sends the request if there may be one more.
func (t totalTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.Counts(r) {
		return t.next.RoundTrip(r)
	}
	if t.requests.Add(1) > t.Requests {
		closeBody(r)
		return nil, &SizeError{t.What, fmt.Sprintf("takes more than %d requests", t.Requests)}
	}
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = &totalBody{response.Body, t.Total}
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t totalTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

type totalBody struct {
	io.ReadCloser
	total *Total
}

// Read reads on as long as the total allows.
func (b *totalBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.total.decoded.Add(int64(DecodedSize(p[:n]))) > b.total.Decoded {
		return 0, &SizeError{b.total.What, "takes more than " + bytesText(b.total.Decoded) + " of memory"}
	}
	return n, err
}
