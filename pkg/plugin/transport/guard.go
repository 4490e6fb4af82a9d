package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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
func GuardDefault() { http.DefaultTransport = &guard{next: http.DefaultTransport} }

// AllowLogins has a guarded http.DefaultTransport pass what client-go's auth provider oidc sends for an
// issuer that a kubeconfig names: the question where tokens are refreshed, and the refresh.
func AllowLogins(issuer string) {
	if g, ok := http.DefaultTransport.(*guard); ok {
		g.issuers.Store(strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", true)
		g.refreshes.Store(true)
	}
}

// guard is used by its pointer: client-go compares transports, and a redirects cannot be compared.
type guard struct {
	next      http.RoundTripper
	issuers   sync.Map    // the URLs at which they describe themselves
	refreshes atomic.Bool // somewhere
}

// RoundTrip sends the request if it came through Redirects, or is a login that was not redirected.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	_, asks := g.issuers.Load(r.URL.String())
	logsIn := r.Response == nil && (asks || r.Method == http.MethodPost && g.refreshes.Load())
	if r.Context().Value(checked{}) == nil && !logsIn {
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
