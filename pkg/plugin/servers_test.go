package plugin_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// servers are what policies of the scripts can reach beyond a cluster: a service
// that answers {"team": "core"}, and a registry that holds the image app:v1, which
// runs as user 1000.
type servers struct{ service, registry string }

func startServers(t *testing.T) servers {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"team": "core", "authorization": %q}`, r.Header.Get("Authorization"))
	}))
	t.Cleanup(service.Close)
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	s := servers{service: service.URL, registry: strings.TrimPrefix(images.URL, "http://")}
	image, err := mutate.Config(empty.Image, v1.Config{User: "1000"})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(s.registry + "/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	return s
}

// describe writes servers.yaml, a ConfigMap in which policies find the servers.
func (s servers) describe(dir string) error {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: servers}\ndata: {service: %q, registry: %q}\n", s.service, s.registry)
	return os.WriteFile(filepath.Join(dir, "servers.yaml"), []byte(text), 0o600)
}
