package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// RedirectError reports a redirect that was not followed.
type RedirectError struct {
	Method string
	From   string // the server that redirects: "https://10.0.0.1:6443"
	To     string // the server that it names; empty if it names none that can be read
	Reason string
}

// Error names both servers, and nothing else of their URLs.
func (e *RedirectError) Error() string {
	to := ""
	if e.To != "" {
		to = " to " + e.To
	}
	return fmt.Sprintf("%s redirects a %s request%s, which is not followed: %s", e.From, e.Method, to, e.Reason)
}

// The reasons of a RedirectError.
const (
	otherHost   = "requests and credentials stay with the host, port and scheme that you named; name the other one if you trust it"
	notARead    = "only reads are redirected"
	badLocation = "its location is no URL"
)

// Redirects says where redirects may lead: nowhere but for reads, and not to another host, port
// or scheme.
type Redirects struct {
	// Origin is the only server that may be asked at all; nil allows any to which no redirect leads.
	Origin *url.URL
	// Elsewhere allows a read to be redirected to another server; nil allows none.
	Elsewhere func(r *http.Request, to *url.URL) bool
}

// Bound wraps a transport so that nothing can be redirected to where it may not lead.
func (d Redirects) Bound(next http.RoundTripper) http.RoundTripper { return redirects{d, next} }

type redirects struct {
	Redirects
	next http.RoundTripper
}

// RoundTrip sends the request, and returns a *RedirectError for an answer that must not
// be followed. A request may come from a redirect that was not seen here: client-go
// keeps answers on disk, in a cache that it shares with kubectl.
func (t redirects) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.Origin != nil && server(t.Origin) != server(r.URL) {
		closeBody(r)
		return nil, &RedirectError{Method: r.Method, From: server(t.Origin), To: server(r.URL), Reason: otherHost}
	}
	response, err := t.next.RoundTrip(markChecked(r))
	if err != nil {
		return nil, err
	}
	if err := t.refusal(r, response); err != nil {
		_ = response.Body.Close() // it is not read
		return nil, err
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t redirects) WrappedRoundTripper() http.RoundTripper { return t.next }

// refusal says why an answer must not be followed; nil for one that is no redirect.
func (d Redirects) refusal(r *http.Request, response *http.Response) error {
	location := response.Header.Get("Location")
	if !isRedirect(response.StatusCode) || location == "" {
		return nil
	}
	refused := &RedirectError{Method: r.Method, From: server(r.URL)}
	to, err := r.URL.Parse(location)
	if err != nil || to.Host == "" {
		refused.Reason = badLocation
		return refused
	}
	refused.To = server(to)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case refused.To != refused.From && !(reads && d.Elsewhere != nil && d.Elsewhere(r, to)):
		refused.Reason = otherHost
	case !reads:
		refused.Reason = notARead
	default:
		return nil
	}
	return refused
}

// isRedirect reports whether http.Client follows an answer with this status.
func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// server is the scheme, host and port of a URL, in one spelling.
func server(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	for _, port := range []string{"http:80", "https:443"} {
		if known, number, _ := strings.Cut(port, ":"); known == scheme {
			host = strings.TrimSuffix(host, ":"+number)
		}
	}
	return scheme + "://" + cut(host)
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // a RoundTripper closes the body even when it fails; nothing was read from it
	}
}
