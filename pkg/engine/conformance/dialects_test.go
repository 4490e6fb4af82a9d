package conformance_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite the results of the cases")

// TestCorpus runs the corpus against every dialect, on snapshots.
func TestCorpus(t *testing.T) {
	options := conformance.Options{Cases: os.DirFS("testdata"), NewCluster: newSnapshot}
	if *update {
		options.Update = func(name string, content []byte) error {
			return os.WriteFile(filepath.Join("testdata", name), content, 0o644)
		}
	}
	for _, d := range dialects.All() {
		t.Run(d.Name(), func(t *testing.T) { conformance.Run(t, d, options) })
	}
}

func newSnapshot(live, others []*unstructured.Unstructured, r engine.Request) (conformance.Cluster, error) {
	s, err := snapshot.Load(engine.Documents(live...), snapshot.Options{World: engine.Documents(others...)})
	if err != nil {
		return conformance.Cluster{}, err
	}
	return conformance.Cluster{
		Objects: s.Source(engine.Scope{ClusterScoped: true, Request: r}),
		World: &engine.World{
			Reader: s, Mapper: s.Mapper(), Limits: engine.DefaultLimits(),
			Now: time.Unix(1_700_000_000, 0).UTC(),
		},
	}, nil
}
