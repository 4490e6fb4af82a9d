package admissionpolicy_test

import (
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// nobody is a Sink that wants no reasons.
type nobody struct{}

func (nobody) Wants(engine.Outcome) bool { return false }

func (nobody) Step(engine.Step) {}

func readBenchmark(b *testing.B) ([]engine.Document, *unstructured.Unstructured) {
	b.Helper()
	archive, err := txtar.ParseFile("testdata/benchmark/policy.txtar")
	if err != nil {
		b.Fatal(err)
	}
	return documents(b, archive.Files[0].Data), documents(b, archive.Files[1].Data)[0].Object()
}

// BenchmarkEvaluate is one policy with a condition, a variable, an apply
// configuration and a JSON patch on one Deployment.
func BenchmarkEvaluate(b *testing.B) {
	policies, u := readBenchmark(b)
	program, err := admissionpolicy.New().Compile(engine.Compilation{Documents: policies})
	if err != nil {
		b.Fatal(err)
	}
	cluster, err := conformance.NewCluster([]*unstructured.Unstructured{u}, nil, engine.Request{})
	if err != nil {
		b.Fatal(err)
	}
	target := engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
	b.ReportAllocs()
	for b.Loop() {
		out, err := program.Evaluate(b.Context(), target, cluster.World, nobody{})
		if err != nil || out == u {
			b.Fatalf("nothing changed: %v", err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}

// BenchmarkCompile is what each further policy of a run costs.
func BenchmarkCompile(b *testing.B) {
	policies, _ := readBenchmark(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := admissionpolicy.New().Compile(engine.Compilation{Documents: policies}); err != nil {
			b.Fatal(err)
		}
	}
}
