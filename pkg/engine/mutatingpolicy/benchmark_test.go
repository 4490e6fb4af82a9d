package mutatingpolicy_test

import (
	"os"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

// quiet counts nothing and wants no reasons.
type quiet struct{}

func (quiet) Wants(o engine.Outcome) bool { return o != engine.NotMatched }

func (quiet) NotMatched(engine.RuleList) {}
func (quiet) Step(engine.Step)           {}

// BenchmarkEvaluate evaluates one policy on one object that it changes.
func BenchmarkEvaluate(b *testing.B) {
	for _, name := range []string{"variables-and-conditions", "autogen", "library", "resource"} {
		b.Run(name, func(b *testing.B) {
			program, live, w := benchmarkCase(b, name)
			target := conformance.TargetOf(live[0])
			for b.Loop() {
				if _, err := program.Evaluate(b.Context(), target, w, quiet{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompile compiles one policy, environment included.
func BenchmarkCompile(b *testing.B) {
	documents, _ := readCase(b, "variables-and-conditions")
	for b.Loop() {
		if _, err := mutatingpolicy.New(project).Compile(engine.Compilation{Documents: documents}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkCase(b *testing.B, name string) (engine.Program, []*unstructured.Unstructured, *engine.World) {
	documents, live := readCase(b, name)
	program, err := mutatingpolicy.New(project).Compile(engine.Compilation{Documents: documents})
	if err != nil {
		b.Fatal(err)
	}
	cluster, err := conformance.NewCluster(live, nil, engine.Request{})
	if err != nil {
		b.Fatal(err)
	}
	return program, live, cluster.World
}

func readCase(b *testing.B, name string) (documents []engine.Document, live []*unstructured.Unstructured) {
	content, err := os.ReadFile("testdata/" + name + ".txtar")
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range txtar.Parse(content).Files {
		switch f.Name {
		case "policy.mutatingpolicy.yaml":
			for _, u := range conformance.ReadObjects(b, string(f.Data)) {
				documents = append(documents, engine.NewDocument(u, ""))
			}
		case "live.yaml":
			live = conformance.ReadObjects(b, string(f.Data))
		}
	}
	return documents, live
}
