package transport_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// elsewhere is a server that nothing may connect to. It counts the connections.
func elsewhere(t *testing.T, secure bool) (address string, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server.URL, connections
}

// locations are places on another server, as a redirect may spell them. AWAY is that
// server, and HERE the own one, without their schemes.
func locations() map[string]string {
	return map[string]string{
		"another host":         "https://AWAY/api?token=hidden",
		"in clear":             "http://AWAY/",
		"with a user":          "https://me:hidden@AWAY/x",
		"without a scheme":     "//AWAY/x",
		"many slashes":         "///AWAY/x",
		"a backslash":          `/\AWAY/x`,
		"own scheme in clear":  "http://HERE/",
		"own name, other port": "https://127.0.0.1:1/",
		"own host, as a user":  "https://HERE@AWAY/",
		"upper case":           "HTTPS://AWAY/",
		"another alphabet":     "https://ｅxample.com/",
		"a fragment":           "https://AWAY#@HERE/",
		"a web socket":         "wss://HERE/",
	}
}

// TestRedirectsElsewhereAreNotFollowed tries every verb, status and spelling.
func TestRedirectsElsewhereAreNotFollowed(t *testing.T) {
	tried := 0
	for _, secure := range []bool{false, true} {
		away, connections := elsewhere(t, secure)
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Location"] = []string{r.Header.Get("To")}
			w.Header().Set("Refresh", "0; url="+away)
			w.Header().Set("Content-Location", away)
			w.Header().Set("Alt-Svc", `h2="`+strings.SplitN(away, "://", 2)[1]+`"; ma=1`)
			status := 0
			_, _ = fmt.Sscan(r.Header.Get("Status"), &status)
			w.WriteHeader(status)
		}))
		defer server.Close()
		client := clientOf(t, server)
		for name, location := range locations() {
			location = strings.ReplaceAll(location, "AWAY", strings.SplitN(away, "://", 2)[1])
			location = strings.ReplaceAll(location, "HERE", strings.TrimPrefix(server.URL, "https://"))
			for _, status := range []string{"301", "302", "303", "307", "308"} {
				for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
					r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/api", strings.NewReader("{}"))
					if err != nil {
						t.Fatal(err)
					}
					r.Header = http.Header{"To": {location}, "Status": {status}, "Authorization": {"Bearer hidden"}}
					err = send(client, r)
					tried++
					var refused *transport.RedirectError
					switch {
					case inside(name) && (method == "GET" || method == "HEAD"):
						// the path stays on the host, whose answer is a redirect again
					case !errors.As(err, &refused):
						t.Errorf("%s, %s, %s: error %v", name, status, method, err)
					case refused.From != server.URL || strings.Contains(refused.Error(), "hidden"):
						t.Errorf("%s, %s, %s: error %v", name, status, method, refused)
					}
				}
			}
		}
		if n := connections.Load(); n != 0 {
			t.Errorf("%d connections to the other server", n)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"To": {away}, "Status": {"302"}}
		if err := send(server.Client(), r); err != nil || connections.Load() == 0 {
			t.Errorf("without the transport: %d connections to the other server, error %v", connections.Load(), err)
		}
	}
	t.Logf("%d redirects", tried)
}

// inside reports whether a location names a path of the own host, oddly.
func inside(name string) bool { return name == "a backslash" || name == "many slashes" }

func clientOf(t *testing.T, server *httptest.Server) *http.Client {
	t.Helper()
	origin, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	// A client certificate, and trust in any server: nothing but the transport keeps it here.
	below := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: server.TLS.Certificates}} // see above
	t.Cleanup(below.CloseIdleConnections)
	return &http.Client{Transport: transport.Redirects{Origin: origin}.Bound(below)}
}

func send(client *http.Client, r *http.Request) error {
	response, err := client.Do(r)
	if err == nil {
		err = response.Body.Close()
	}
	return err
}

func TestRedirectsWithinTheHost(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		n := 0
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err == nil && n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusTemporaryRedirect)
			return
		}
		if r.URL.Path == "/round" {
			http.Redirect(w, r, "/round?again", http.StatusFound)
		}
	}))
	defer server.Close()
	client := clientOf(t, server)
	for _, c := range []struct {
		method, path string
		requests     int64
		want         string
	}{
		{"GET", "/0", 1, ""},
		{"GET", "/1", 2, ""},
		{"HEAD", "/5", 6, ""},
		{"GET", "/round", 10, "stopped after 10 redirects"},
		{"POST", "/1", 1, "only reads are redirected"},
		{"PATCH", "/1", 1, "only reads are redirected"},
		{"DELETE", "/1", 1, "only reads are redirected"},
	} {
		requests.Store(0)
		r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = send(client, r)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) || requests.Load() != c.requests {
			t.Errorf("%s %s: %d requests, error %v", c.method, c.path, requests.Load(), err)
		}
	}
}

// TestNothingLeavesForAnotherServer sends requests that come from a redirect that the transport
// has not seen.
func TestNothingLeavesForAnotherServer(t *testing.T) {
	away, connections := elsewhere(t, false)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	for _, address := range []string{away, strings.Replace(server.URL, "https:", "http:", 1), "https://127.0.0.1:1"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/api?hidden", nil)
		if err != nil {
			t.Fatal(err)
		}
		var refused *transport.RedirectError
		if err := send(clientOf(t, server), r); !errors.As(err, &refused) || refused.To != address || refused.From != server.URL {
			t.Errorf("%s: error %v", address, err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections to the other server", n)
	}
}

// TestClientsOfLibrariesSendNothing has http.DefaultTransport as a process has it.
func TestClientsOfLibrariesSendNothing(t *testing.T) {
	defer func(usual http.RoundTripper) { http.DefaultTransport = usual }(http.DefaultTransport)
	transport.GuardDefault()
	away, connections := elsewhere(t, false)
	for _, client := range []*http.Client{{}, http.DefaultClient, {Transport: http.DefaultTransport}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, away+"/x?hidden", strings.NewReader("hidden"))
		if err != nil {
			t.Fatal(err)
		}
		var refused *transport.UnknownClientError
		if err := send(client, r); !errors.As(err, &refused) || refused.To != away || strings.Contains(refused.Error(), "hidden") {
			t.Errorf("error %v", err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Fatalf("%d connections", n)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, away, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := send(&http.Client{Transport: transport.Redirects{}.Bound(http.DefaultTransport)}, r); err != nil || connections.Load() != 1 {
		t.Errorf("through Redirects: %d connections, error %v", connections.Load(), err)
	}
}

func TestDefaultPortsAreTheSameServer(t *testing.T) {
	origin, _ := url.Parse("https://Example.com:443")
	next := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"https://example.com/x"}}, Body: http.NoBody}, nil
	})
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com:443/", nil)
	response, err := transport.Redirects{Origin: origin}.Bound(next).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
