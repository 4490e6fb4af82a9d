package factory_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// otherRegistry is a server that nothing may connect to.
func otherRegistry(t *testing.T) string {
	t.Helper()
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(func() {
		s.Close()
		if n := connections.Load(); n != 0 {
			t.Errorf("%d connections to the other server", n)
		}
	})
	return s.URL
}

func TestServiceCallsStayWhereThePolicySays(t *testing.T) {
	away := otherRegistry(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			w.Header().Set("Location", away+"/x?hidden")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "/again":
			w.Header().Set("Location", "/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			echo(w, r)
		}
	}))
	defer server.Close()
	if got, err := fetch(t, &factory.ServiceClient{}, engine.RemoteRequest{URL: server.URL + "/again"}); err != nil || !strings.HasPrefix(got, "GET /there") {
		t.Errorf("a read within the host: got %s, %v", got, err)
	}
	for _, c := range []struct{ method, path, to string }{{"GET", "/away", away}, {"POST", "/away", away}, {"POST", "/again", server.URL}} {
		_, err := fetch(t, &factory.ServiceClient{}, engine.RemoteRequest{
			Method: c.method, URL: server.URL + c.path + "?query=hidden", Header: map[string][]string{"Authorization": {"Bearer hidden"}}, Body: []byte("{}"),
		})
		var refused *transport.RedirectError
		if !errors.As(err, &refused) || refused.From != server.URL || refused.To != c.to || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s %s: error %v", c.method, c.path, err)
		}
	}
}

// TestRegistriesKeepThePassword looks an image up in a registry that redirects one kind of
// request, and asks for tokens elsewhere.
func TestRegistriesKeepThePassword(t *testing.T) {
	for name, path := range map[string]string{"the version": "/v2/", "manifests": "/manifests/", "blobs": "/blobs/"} {
		t.Run(name, func(t *testing.T) {
			away := otherRegistry(t)
			redirected := false
			host, _, _ := server(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if user, _, _ := r.BasicAuth(); user == "" && path != "/v2/" {
						w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
						w.WriteHeader(http.StatusUnauthorized)
						return
					}
					if r.URL.Path == path || path != "/v2/" && strings.Contains(r.URL.Path, path) {
						redirected = true
						http.Redirect(w, r, away+r.URL.Path, http.StatusTemporaryRedirect)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			_, err := (&factory.RegistryClient{Keychain: keychain{}}).Image(t.Context(), host+"/team/app:v1")
			if err == nil || !redirected || !strings.Contains(err.Error(), "http://"+host) || !strings.Contains(err.Error(), away) {
				t.Errorf("redirected: %t, error %v", redirected, err)
			}
		})
	}
}
