package mutatingpolicy_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

type clusterMaker = func(live, others []*unstructured.Unstructured, r engine.Request) (conformance.Cluster, error)

// newCluster is a cluster of manifests.
func newCluster(live, others []*unstructured.Unstructured, r engine.Request) (conformance.Cluster, error) {
	s, err := snapshot.Load(engine.Documents(live...), snapshot.Options{World: engine.Documents(others...)})
	if err != nil {
		return conformance.Cluster{}, err
	}
	w := newWorld()
	w.Reader, w.Raw, w.Mapper = s, s, s.Mapper()
	return conformance.Cluster{Objects: s.Source(engine.Scope{ClusterScoped: true, Request: r}), World: w}, nil
}

// newWorld is a world that can do nothing.
func newWorld() *engine.World {
	return &engine.World{Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seed: 1, Limits: engine.DefaultLimits()}
}

// newGrantedCluster is a cluster of manifests that also answers reviews, and from
// which services and registries can be reached.
func newGrantedCluster(live, others []*unstructured.Unstructured, r engine.Request) (conformance.Cluster, error) {
	c, err := newCluster(live, others, r)
	if err == nil {
		c.World.Raw = reviews{c.World.Raw}
		c.World.Remote, c.World.Registry, c.World.Memo = services{}, registry{}, &engine.Memo{}
	}
	return c, err
}

// reviews allows everything that is asked for with a POST.
type reviews struct{ engine.RawReader }

func (r reviews) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	if method != "POST" {
		return r.RawReader.Raw(ctx, method, path, body)
	}
	review := map[string]any{}
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	review["status"] = map[string]any{"allowed": true, "reason": path}
	return json.Marshal(review)
}

// services answer with the request, but for a few paths.
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

// registry knows one image.
type registry struct{}

func (registry) Image(_ context.Context, reference string) (engine.Image, error) {
	if reference != "ghcr.io/org/app:v1" {
		return engine.Image{}, errors.New("MANIFEST_UNKNOWN")
	}
	return engine.Image{
		Registry: "ghcr.io", Repository: "org/app", Identifier: "v1", Resolved: "ghcr.io/org/app@sha256:1b26",
		ManifestList: []byte(`{"manifests":[{"platform":{"architecture":"amd64"}}]}`),
		Manifest:     []byte(`{"annotations":{"base":"scratch"},"schemaVersion":2}`),
		Config:       []byte(`{"config":{"User":"1000"}}`),
	}, nil
}

func targetOf(u *unstructured.Unstructured) engine.Target {
	return engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
}
