package impact

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// BenchmarkLive judges a change to a Deployment that several managers have written
// to; an object that does not change costs nothing.
func BenchmarkLive(b *testing.B) {
	text, err := os.ReadFile(filepath.Join("testdata", "benchmark.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	before := conformance.ReadObject(b, text)
	after := before.DeepCopy()
	template := valueAt(after.Object, "spec", "template").(map[string]any)
	template["metadata"].(map[string]any)["annotations"] = map[string]any{"a": "b"}
	valueAt(template, "spec").(map[string]any)["containers"].([]any)[0].(map[string]any)["imagePullPolicy"] = "Always"
	c := conformance.ChangeBetween(b, before, after)
	reviewer := &Reviewer{FieldManager: "kubectl-mutate"}
	b.ReportAllocs()
	for b.Loop() {
		c.Impacts = nil
		if err := reviewer.live(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	if len(c.Impacts) == 0 {
		b.Error("nothing to tell")
	}
}
