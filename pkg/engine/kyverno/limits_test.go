package kyverno

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// The elements of nested lists count together: two containers, and four
// variables in them, are more than five.
func TestForEachElementLimit(t *testing.T) {
	text, err := os.ReadFile("testdata/foreach-nested.txtar")
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(text)
	policy, live := conformance.ReadObjects(t, string(archive.Files[0].Data))[0], conformance.ReadObjects(t, string(archive.Files[1].Data))[0]
	program, err := New().Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(policy, "")}})
	if err != nil {
		t.Fatal(err)
	}
	w := conformance.NewWorld()
	w.Limits.Elements = 5
	var steps strings.Builder
	after, err := program.Evaluate(t.Context(), conformance.TargetOf(live), w, conformance.Steps{Writer: &steps})
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
