package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// Cluster is what a case is evaluated in.
type Cluster struct {
	Objects engine.Source // streams the live objects
	World   *engine.World // serves the live and the other objects
}

// NewWorld returns a World that reads nothing, with a time and a seed that stay the same.
func NewWorld() *engine.World {
	return &engine.World{Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seed: 1}
}

// NewCluster returns a Cluster of manifests.
func NewCluster(live, others []*unstructured.Unstructured, r engine.Request) (Cluster, error) {
	s, err := snapshot.Load(engine.Documents(live...), snapshot.Options{World: engine.Documents(others...)})
	if err != nil {
		return Cluster{}, err
	}
	w := NewWorld()
	w.Reader, w.Raw, w.Mapper, w.Document = s, s, s.Mapper(), s.Document
	return Cluster{Objects: s.Source(engine.Scope{ClusterScoped: true, Request: r}), World: w}, nil
}

// Grant lets a World reach services, which answer with the request but for the paths /absent and /text, and a
// registry, which has ghcr.io/org/app with a manifest (v1), with that and an index (multi), and with neither
// (bare).
func Grant(w *engine.World) {
	w.Remote, w.Registry, w.Memo = services{}, registry{}, &engine.Memo{}
}

type services struct{}

func (services) Fetch(_ context.Context, r engine.RemoteRequest) ([]byte, error) {
	switch {
	case strings.HasSuffix(r.URL, "/absent"):
		return nil, errors.New("HTTP 404 Not Found")
	case strings.HasSuffix(r.URL, "/text"):
		return []byte("not JSON"), nil
	}
	return json.Marshal(map[string]any{
		"method": r.Method, "url": r.URL, "header": r.Header, "body": string(r.Body), "caBundle": string(r.CABundle),
	})
}

type registry struct{}

func (registry) Image(_ context.Context, reference string) (engine.Image, error) {
	image := engine.Image{
		Registry: "ghcr.io", Repository: "org/app", Resolved: "ghcr.io/org/app@sha256:1b26",
		Config: []byte(`{"config":{"User":"1000"}}`),
	}
	switch image.Identifier = strings.TrimPrefix(reference, "ghcr.io/org/app:"); image.Identifier {
	case "multi":
		image.ManifestList = []byte(`{"manifests":[{"platform":{"architecture":"amd64"}}]}`)
		fallthrough
	case "v1":
		image.Manifest = []byte(`{"annotations":{"base":"scratch"},"schemaVersion":2}`)
		fallthrough
	case "bare":
		return image, nil
	}
	return engine.Image{}, errors.New("MANIFEST_UNKNOWN")
}
