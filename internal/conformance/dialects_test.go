package conformance_test

import (
	"flag"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
)

var update = flag.Bool("update", false, "rewrite the results of the cases")

// TestCorpus runs the corpus against every dialect, on snapshots.
func TestCorpus(t *testing.T) {
	for _, d := range dialects.All() {
		t.Run(d.Name(), func(t *testing.T) { conformance.RunDirectory(t, d, "testdata", *update, conformance.Options{}) })
	}
}
