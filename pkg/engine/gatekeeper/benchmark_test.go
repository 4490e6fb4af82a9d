package gatekeeper_test

import (
	"bytes"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper"
)

// nobody is a Sink that wants no reasons.
type nobody struct{}

func (nobody) Wants(engine.Outcome) bool { return false }

func (nobody) NotMatched(engine.RuleList) {}
func (nobody) Step(engine.Step)           {}

// BenchmarkEvaluate is the whole fixed point of ten mutators on one Pod.
func BenchmarkEvaluate(b *testing.B) {
	archive, err := txtar.ParseFile("testdata/benchmark/ten-mutators.txtar")
	if err != nil {
		b.Fatal(err)
	}
	var documents []engine.Document
	for _, text := range bytes.Split(archive.Files[0].Data, []byte("---\n")) {
		documents = append(documents, engine.NewDocument(object(b, text), ""))
	}
	program, err := gatekeeper.New().Compile(engine.Compilation{Documents: documents})
	if err != nil {
		b.Fatal(err)
	}
	u := object(b, archive.Files[1].Data)
	target := engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
	world := &engine.World{Limits: engine.DefaultLimits()}
	b.ReportAllocs()
	for b.Loop() {
		out, err := program.Evaluate(b.Context(), target, world, nobody{})
		if err != nil || out == u {
			b.Fatalf("nothing changed: %v", err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
}
