package admissionpolicy_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

func TestCases(t *testing.T) {
	o := conformance.Options{Cases: os.DirFS("testdata"), NewCluster: newCluster}
	if *update {
		o.Update = func(name string, content []byte) error {
			return os.WriteFile(filepath.Join("testdata", name), content, 0o644)
		}
	}
	conformance.Run(t, admissionpolicy.New(), o)
}

// newCluster is a cluster of manifests.
func newCluster(live, others []*unstructured.Unstructured, r engine.Request) (conformance.Cluster, error) {
	s, err := snapshot.Load(engine.Documents(live...), snapshot.Options{World: engine.Documents(others...)})
	if err != nil {
		return conformance.Cluster{}, err
	}
	return conformance.Cluster{
		Objects: s.Source(engine.Scope{ClusterScoped: true, Request: r}),
		World:   &engine.World{Reader: s, Mapper: s.Mapper(), Limits: engine.DefaultLimits(), Memo: &engine.Memo{}},
	}, nil
}
