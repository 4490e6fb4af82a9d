package kyverno

import (
	"context"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// The cases in testdata/granted may call services and look images up.
func TestGrantedCases(t *testing.T) {
	conformance.RunDirectory(t, New(), "testdata/granted", *update, conformance.Options{NewCluster: newGrantedCluster})
}

// newGrantedCluster is a cluster of manifests from which services and registries
// can be reached.
func newGrantedCluster(live, others []*unstructured.Unstructured, r engine.Request) (conformance.Cluster, error) {
	c, err := conformance.NewCluster(live, others, r)
	if err == nil {
		conformance.Grant(c.World)
	}
	return c, err
}

// counted counts what reaches the API server, the services and the registry.
type counted struct {
	engine.RawReader
	calls atomic.Int32
}

func (c *counted) Raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	c.calls.Add(1)
	return c.RawReader.Raw(ctx, method, path, body)
}

// What is not there is asked for once as well.
func TestGrantedAnswersAreCached(t *testing.T) {
	var live []*unstructured.Unstructured
	for _, name := range []string{"a", "b", "c", "d"} {
		live = append(live, conformance.ReadObjects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: "+name+"}}")...)
	}
	policies := conformance.ReadObjects(t, readOncePolicy)
	documents := []engine.Document{engine.NewDocument(policies[0], "policy.yaml:1")}
	cluster, err := newGrantedCluster(live, nil, engine.Request{})
	if err != nil {
		t.Fatal(err)
	}
	raw := &counted{RawReader: cluster.World.Raw}
	cluster.World.Raw = raw
	program, err := New().Compile(engine.Compilation{Documents: documents})
	if err != nil {
		t.Fatal(err)
	}
	e := evaluation.New([]engine.Program{program}, cluster.World, evaluation.Options{})
	changed := 0
	err = e.Run(t.Context(), cluster.Objects, func(c *engine.Change) error { changed++; return nil })
	if err != nil || changed != len(live) {
		t.Fatalf("%d objects changed, %v", changed, err)
	}
	if got := raw.calls.Load(); got != 2 {
		t.Errorf("the API server was asked %d times, want once for each of two paths", got)
	}
}

const readOncePolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - name: all
      apiCall: {urlPath: /api/v1/configmaps, jmesPath: "length(items)"}
    - name: absent
      apiCall: {urlPath: /api/v1/namespaces/shop/secrets/absent, default: none}
    mutate: {patchStrategicMerge: {metadata: {labels: {all: "{{ to_string(all) }}", absent: "{{ absent }}"}}}}
`
