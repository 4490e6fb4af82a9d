package kyverno

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The elements of nested lists count together: two containers, and four
// variables in them, are more than five.
func TestForEachElementLimit(t *testing.T) {
	text, err := os.ReadFile("testdata/foreach-nested.txtar")
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(text)
	policy, live := objects(t, archive.Files[0].Data)[0], objects(t, archive.Files[1].Data)[0]
	program, err := New().Compile(engine.Compilation{Documents: []engine.Document{{Object: policy}}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.Limits.Elements = 5
	var steps strings.Builder
	after, err := program.Evaluate(t.Context(), targetOf(live), w, reasons{&steps})
	if err != nil {
		t.Fatal(err)
	}
	if after != live {
		t.Error("a rule that failed changed the object")
	}
	if want := "more than 5 elements (limit Elements)"; !strings.Contains(steps.String(), want) {
		t.Errorf("no step says %q:\n%s", want, &steps)
	}
}

// A policy that was compiled takes less memory than its document, of which it keeps nothing.
func TestProgramsKeepNoDocuments(t *testing.T) {
	const policies = 2000
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	documents := make([]engine.Document, policies)
	for i := range documents {
		text := fmt.Sprintf(`{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p%d"}, "spec": {"rules": [{"name": "r",
			"match": {"any": [{"resources": {"kinds": ["Thing"]}}]}, "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"l%d": "v"}}}}}]}}`, i, i)
		documents[i] = engine.Document{Object: objects(t, []byte(text))[0]}
	}
	read := held()
	program, err := New().Compile(engine.Compilation{Documents: documents, Release: true})
	if err != nil {
		t.Fatal(err)
	}
	compiled := held()
	runtime.KeepAlive(program)
	if documents, program := read-before, compiled-before; 2*program > documents {
		t.Errorf("%d policies take %d bytes, their documents %d: want less than a half", policies, program, documents)
	}
}
