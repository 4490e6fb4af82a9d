package transport

import (
	"context"
	"fmt"
	"net/http"
)

// UnknownClientError reports a request of an HTTP client that is not the program's own.
type UnknownClientError struct {
	Method string
	To     string // the server: "https://example.com"
}

// Error names the server, and nothing else of the URL.
func (e *UnknownClientError) Error() string {
	return fmt.Sprintf("a %s request to %s is not sent: no flag names that server", e.Method, e.To)
}

// GuardDefault has http.DefaultTransport refuse, with an *UnknownClientError, what did not come
// through Redirects: libraries send nothing with clients of their own. It is for the start of a
// process.
func GuardDefault() { http.DefaultTransport = &guard{http.DefaultTransport} }

// guard is used by its pointer: client-go compares transports, and a redirects cannot be compared.
type guard struct{ next http.RoundTripper }

// RoundTrip sends the request if it came through Redirects.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Context().Value(checked{}) == nil {
		closeBody(r)
		return nil, &UnknownClientError{Method: r.Method, To: server(r.URL)}
	}
	return g.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// checked is the key of the context of a request that came through Redirects.
type checked struct{}

func markChecked(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), checked{}, true))
}
