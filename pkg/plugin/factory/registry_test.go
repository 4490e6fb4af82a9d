package factory_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
)

// server is a registry that holds app:v1, an image, and app:multi, an index of it.
func server(t *testing.T, wrap func(http.Handler) http.Handler) (host string, image v1.Image, index v1.ImageIndex) {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	host = strings.TrimPrefix(s.URL, "http://")
	image, err := mutate.Config(empty.Image, v1.Config{User: "1000", Labels: map[string]string{"team": "core"}})
	if err != nil {
		t.Fatal(err)
	}
	image = mutate.Annotations(image, map[string]string{"org.opencontainers.image.base.name": "scratch"}).(v1.Image)
	index = mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	if err := remote.Write(reference(t, host+"/team/app:v1"), image); err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(reference(t, host+"/team/app:multi"), index); err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		wrapped := httptest.NewServer(wrap(handler))
		t.Cleanup(wrapped.Close)
		host = strings.TrimPrefix(wrapped.URL, "http://")
	}
	return host, image, index
}

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestImageByTag(t *testing.T) {
	host, image, _ := server(t, nil)
	got, err := (&factory.RegistryClient{}).Image(t.Context(), host+"/team/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := image.Digest()
	if got.Registry != host || got.Repository != "team/app" || got.Identifier != "v1" || got.Resolved != host+"/team/app@"+digest.String() {
		t.Errorf("got %+v", got)
	}
	var manifest struct{ Annotations map[string]string }
	var config struct{ Config struct{ User string } }
	if json.Unmarshal(got.Manifest, &manifest) != nil || manifest.Annotations["org.opencontainers.image.base.name"] != "scratch" {
		t.Errorf("manifest %s", got.Manifest)
	}
	if json.Unmarshal(got.Config, &config) != nil || config.Config.User != "1000" || got.ManifestList != nil {
		t.Errorf("config %s, manifest list %s", got.Config, got.ManifestList)
	}
}

func TestImageOfAnIndexResolvesToTheIndex(t *testing.T) {
	host, image, index := server(t, nil)
	got, err := (&factory.RegistryClient{}).Image(t.Context(), host+"/team/app:multi")
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := index.Digest()
	if want := host + "/team/app@" + digest.String(); got.Resolved != want {
		t.Errorf("resolved to %s, want %s", got.Resolved, want)
	}
	manifest, _ := image.RawManifest()
	if !strings.Contains(string(got.ManifestList), "manifests") || string(got.Manifest) != string(manifest) {
		t.Errorf("manifest list %s, manifest %s", got.ManifestList, got.Manifest)
	}
}

func TestImageThatIsNotThere(t *testing.T) {
	host, _, _ := server(t, nil)
	for _, text := range []string{host + "/team/app:v2", host + "/absent", "Not A Reference"} {
		if got, err := (&factory.RegistryClient{}).Image(t.Context(), text); err == nil {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

type keychain struct{}

func (keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return &authn.Basic{Username: "me", Password: "secret"}, nil
}

func TestImageLookupEnds(t *testing.T) {
	stop := make(chan struct{})
	host, _, _ := server(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop })
	})
	defer close(stop)
	_, err := (&factory.RegistryClient{Timeout: 50 * time.Millisecond}).Image(t.Context(), host+"/team/app:v1")
	if want := "the answer of " + host + " was given up: it takes longer than 50ms"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
