package kyverno

import (
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// The elements of nested lists count together: two containers, and four
// variables in them, are more than five.
func TestForEachElementLimit(t *testing.T) {
	documents, live := readCase(t, "foreach-nested")
	program, err := New().Compile(engine.Compilation{Documents: documents})
	if err != nil {
		t.Fatal(err)
	}
	w := conformance.NewWorld()
	w.Limits.Elements = 5
	var steps strings.Builder
	after, err := program.Evaluate(t.Context(), conformance.TargetOf(live[0]), w, conformance.Steps{Writer: &steps})
	if err != nil || after != live[0] {
		t.Errorf("a rule that failed changed the object: %v", err)
	}
	if want := "more than 5 elements (limit Elements)"; !strings.Contains(steps.String(), want) {
		t.Errorf("no step says %q:\n%s", want, &steps)
	}
}
