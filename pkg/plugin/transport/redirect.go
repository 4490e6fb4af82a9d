package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// RedirectError reports a redirect that was not followed.
type RedirectError struct {
	Method string
	From   string // the server that redirects: "https://10.0.0.1:6443"
	To     string // the server that it names
	Reason string
}

// Error names both servers, and nothing else of their URLs.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("%s redirects a %s request to %s, which is not followed: %s", e.From, e.Method, e.To, e.Reason)
}

// Redirects restricts redirects to reads on the same host, port and scheme.
type Redirects struct {
	// Origin is the only server that may be called; nil allows every server that no redirect leads to.
	Origin *url.URL
	// Elsewhere allows a read to be redirected to another server; nil forbids it.
	Elsewhere func(r *http.Request, to *url.URL) bool
}

// Bound wraps a transport so that it follows only allowed redirects.
func (d Redirects) Bound(next http.RoundTripper) http.RoundTripper { return redirects{d, next} }

type redirects struct {
	Redirects
	next http.RoundTripper
}

// RoundTrip sends the request, or returns a *RedirectError if a forbidden redirect led to it.
func (t redirects) RoundTrip(r *http.Request) (*http.Response, error) {
	if refused := t.refusal(r); refused != nil {
		closeBody(r)
		return nil, refused
	}
	return t.next.RoundTrip(r.WithContext(context.WithValue(r.Context(), checked{}, true)))
}

// refusal returns why a request is not sent, or nil. http.Client sets the response that redirected to it.
func (d Redirects) refusal(r *http.Request) error {
	refused := &RedirectError{
		Method: r.Method, To: server(r.URL),
		Reason: "requests and credentials stay with the host, port and scheme that you named; name the other one if you trust it",
	}
	if d.Origin != nil && server(d.Origin) != refused.To {
		refused.From = server(d.Origin)
		return refused
	}
	if r.Response == nil || r.Response.Request == nil {
		return nil
	}
	before := r.Response.Request
	refused.Method, refused.From = before.Method, server(before.URL)
	reads := before.Method == http.MethodGet || before.Method == http.MethodHead
	switch {
	case refused.To != refused.From && !(reads && d.Elsewhere != nil && d.Elsewhere(before, r.URL)):
		return refused
	case !reads:
		refused.Reason = "only reads are redirected"
		return refused
	}
	return nil
}

// server returns the scheme, host and port of a URL in one spelling.
func server(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	for _, port := range []string{"http:80", "https:443"} {
		if known, number, _ := strings.Cut(port, ":"); known == scheme {
			host = strings.TrimSuffix(host, ":"+number)
		}
	}
	return scheme + "://" + host
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // a RoundTripper closes the body even when it fails; nothing was read from it
	}
}

// NewClient returns a client without credentials and cookies, which follows no redirect to another server
// and keeps no connection open. It trusts roots, or those of the system if nil; the timeout covers a request
// and reading its response.
func NewClient(roots *x509.CertPool, timeout time.Duration) *http.Client {
	below := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}
	return &http.Client{Transport: Redirects{}.Bound(below), Timeout: timeout}
}

// UnknownClientError reports a request of an HTTP client other than the program's own.
type UnknownClientError struct {
	Method string
	To     string // the server: "https://example.com"
}

// Error names the server, and nothing else of the URL.
func (e *UnknownClientError) Error() string {
	return fmt.Sprintf("a %s request to %s is not sent: no flag names that server", e.Method, e.To)
}

// GuardDefault makes http.DefaultTransport refuse requests that did not pass through Redirects, with an
// *UnknownClientError: libraries send nothing with clients of their own. Call it when the process starts.
func GuardDefault() { http.DefaultTransport = &guard{next: http.DefaultTransport} }

// AllowLogins lets a guarded http.DefaultTransport pass the requests of client-go's auth provider oidc for
// an issuer of a kubeconfig: its discovery, and the token refresh.
func AllowLogins(issuer string) {
	if g, ok := http.DefaultTransport.(*guard); ok {
		g.issuers.Store(strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", true)
		g.refreshes.Store(true)
	}
}

// guard is used by its pointer: client-go compares transports, and redirects is not comparable.
type guard struct {
	next      http.RoundTripper
	issuers   sync.Map    // the URLs at which they describe themselves
	refreshes atomic.Bool // somewhere
}

// RoundTrip sends the request if it passed through Redirects, or is a login that was not redirected.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	_, asks := g.issuers.Load(r.URL.String())
	logsIn := r.Response == nil && (asks || r.Method == http.MethodPost && g.refreshes.Load())
	if r.Context().Value(checked{}) == nil && !logsIn {
		closeBody(r)
		return nil, &UnknownClientError{Method: r.Method, To: server(r.URL)}
	}
	return g.next.RoundTrip(r)
}

// checked is the context key of a request that passed through Redirects.
type checked struct{}
