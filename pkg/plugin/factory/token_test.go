package factory

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestTokensOfRegistries logs in where a registry says that its tokens are made.
func TestTokensOfRegistries(t *testing.T) {
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		realm string
		told  []string // which hosts were sent the password
		fails string
	}{
		"itself":           {"https://registry.example.com/token", []string{"registry.example.com"}, ""},
		"another host":     {"https://auth.example.com/token", []string{"auth.example.com"}, ""},
		"in clear":         {"http://auth.example.com/token", nil, "http"},
		"redirected":       {"https://auth.example.com/redirect", []string{"auth.example.com"}, "https://auth.example.com redirects a GET request to https://third.example.com,"},
		"another name":     {"https://intern.corp/token", nil, "certificate"},
		"an unknown place": {"https://nowhere.example.com/token", nil, "no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			told, err := logIn(t, image, c.realm)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
			if fmt.Sprint(told) != fmt.Sprint(c.told) {
				t.Errorf("the password was sent to %v, want %v", told, c.told)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the password is in the error: %v", err)
			}
		})
	}
}

// logIn looks an image up in a registry that makes its tokens somewhere, and returns the hosts that were sent
// the password.
func logIn(t *testing.T, image v1.Image, realm string) (told []string, err error) {
	t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	open := true
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password == "hidden" {
			told = append(told, r.Host)
		}
		switch {
		case r.URL.Path == "/token":
			fmt.Fprint(w, `{"token": "made"}`)
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, "https://third.example.com/token", http.StatusFound)
		case open || r.Header.Get("Authorization") == "Bearer made":
			images.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="s"`, realm))
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	server, plain := httptest.NewTLSServer(handler), httptest.NewServer(handler)
	defer server.Close()
	defer plain.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	below := names(map[string]*httptest.Server{"registry.example.com": server, "auth.example.com": server, "third.example.com": server, "intern.corp": server})
	if strings.HasPrefix(realm, "http:") {
		dial := below.DialContext
		below.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasSuffix(address, ":80") {
				return (&net.Dialer{}).DialContext(ctx, network, plain.Listener.Addr().String())
			}
			return dial(ctx, network, address)
		}
	}
	defer below.CloseIdleConnections()
	c := RegistryClient{Keychain: keychain{}, below: below}
	ref, err := name.ParseReference("registry.example.com/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithTransport(below)); err != nil {
		t.Fatal(err)
	}
	open = false
	_, err = c.Image(t.Context(), ref.Name())
	return told, err
}
