package kyverno

import (
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// quiet is a Sink that counts nothing and wants no reasons.
type quiet struct{}

func (quiet) Wants(engine.Outcome) bool { return false }

func (quiet) Step(engine.Step) {}

// BenchmarkEvaluate evaluates one policy on one object that it changes.
func BenchmarkEvaluate(b *testing.B) {
	for _, name := range []string{"doc-mutate-01-image-pull-policy", "context-variable", "condition-beside-a-variable", "foreach-nested", "match-namespace-selector"} {
		b.Run(name, func(b *testing.B) {
			documents, live := readCase(b, name)
			program, err := New().Compile(engine.Compilation{Documents: documents})
			if err != nil {
				b.Fatal(err)
			}
			cluster, err := conformance.NewCluster(live, nil, engine.Request{})
			if err != nil {
				b.Fatal(err)
			}
			target := conformance.TargetOf(live[0])
			for b.Loop() {
				if _, err := program.Evaluate(b.Context(), target, cluster.World, quiet{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func readCase(b testing.TB, name string) (documents []engine.Document, live []*unstructured.Unstructured) {
	archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range archive.Files {
		switch f.Name {
		case "policy.kyverno.yaml":
			for _, u := range conformance.ReadObjects(b, string(f.Data)) {
				documents = append(documents, engine.NewDocument(u, ""))
			}
		case "live.yaml":
			live = conformance.ReadObjects(b, string(f.Data))
		}
	}
	return documents, live
}
