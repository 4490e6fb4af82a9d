package factory

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// names connects to servers by names, which their certificates have: httptest's are for *.example.com.
func names(servers map[string]*httptest.Server) *http.Transport {
	roots := x509.NewCertPool()
	for _, s := range servers {
		roots.AddCert(s.Certificate())
	}
	return &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			s := servers[host]
			if s == nil {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
}

// TestBlobsOfStorage reads the configuration of an image from another host, which behaves in each way.
func TestBlobsOfStorage(t *testing.T) {
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		location string
		answer   http.HandlerFunc
		want     string // in the error; empty for none
	}{
		"the blob":     {"https://storage.example.com/x?signature=s", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(config) }, ""},
		"another blob": {"https://storage.example.com/x", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }, "sha256"},
		"no end":       {"https://storage.example.com/x", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, zeros{}) }, "sha256"},
		"a password": {"https://storage.example.com/x", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}, "401"},
		"another redirect": {"https://storage.example.com/x", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://third.example.com/x", http.StatusFound)
		}, "https://storage.example.com redirects a GET request to https://third.example.com,"},
		"in clear":     {"http://storage.example.com/x", nil, "https://registry.example.com redirects a GET request to http://storage.example.com,"},
		"another name": {"https://intern.corp/x", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(config) }, "certificate"},
		"an address":   {"https://127.0.0.1/x", nil, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			var told atomic.Int64 // how often another host was sent credentials
			storage := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
					told.Add(1)
				}
				if c.answer != nil {
					c.answer(w, r)
				}
			}))
			defer storage.Close()
			storage.Config.ErrorLog = log.New(io.Discard, "", 0)
			err := lookUp(t, image, c.location, storage)
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v", err)
			case c.want == "" && err != nil:
				t.Error(err)
			case told.Load() != 0:
				t.Errorf("credentials were sent %d times", told.Load())
			}
		})
	}
}

// lookUp looks an image up in a registry with a password, which redirects its configuration.
func lookUp(t *testing.T, image v1.Image, location string, storage *httptest.Server) error {
	t.Helper()
	config, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	redirects := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hidden" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if redirects && strings.HasSuffix(r.URL.Path, "/blobs/"+config.String()) {
			http.Redirect(w, r, location, http.StatusTemporaryRedirect)
			return
		}
		images.ServeHTTP(w, r)
	}))
	defer server.Close()
	below := names(map[string]*httptest.Server{"registry.example.com": server, "storage.example.com": storage, "intern.corp": storage})
	defer below.CloseIdleConnections()
	c := RegistryClient{Keychain: keychain{}, below: below}
	ref, err := name.ParseReference("registry.example.com/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithAuthFromKeychain(c.Keychain), remote.WithTransport(below)); err != nil {
		t.Fatal(err)
	}
	redirects = true
	_, err = c.Image(t.Context(), ref.Name())
	return err
}

type keychain struct{}

func (keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "me", Password: "hidden"}, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
