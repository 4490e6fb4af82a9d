package openapi_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// BenchmarkBuiltin reads the schema of one kind, as a run on a small file does.
func BenchmarkBuiltin(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var all openapi.Builtin
		if _, err := all.Document(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}); err != nil {
			b.Fatal(err)
		}
	}
}
