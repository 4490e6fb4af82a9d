package mutatingpolicy_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

func TestCases(t *testing.T) { runCases(t, "testdata", newCluster) }

// The cases in testdata/granted may call services and look images up.
func TestGrantedCases(t *testing.T) {
	runCases(t, filepath.Join("testdata", "granted"), newGrantedCluster)
}

func runCases(t *testing.T, dir string, cluster clusterMaker) {
	o := conformance.Options{Cases: os.DirFS(dir), NewCluster: cluster}
	if *update {
		o.Update = func(name string, content []byte) error {
			return os.WriteFile(filepath.Join(dir, name), content, 0o644)
		}
	}
	conformance.Run(t, mutatingpolicy.New(project), o)
}

// project stands for JMESPath: it knows names of fields alone.
func project(_ *engine.World, expression string, data any) (any, error) {
	fields, _ := data.(map[string]any)
	return fields[expression], nil
}
