package kyverno

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

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

func targetOf(u *unstructured.Unstructured) engine.Target {
	return engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
}
