package kyverno

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// The elements of nested lists count together: a hundred containers, and a hundred variables in each of them,
// are too many.
func TestForEachElementLimit(t *testing.T) {
	documents, live := readCase(t, "foreach-nested")
	program, err := New().Compile(engine.Compilation{Documents: documents})
	if err != nil {
		t.Fatal(err)
	}
	for _, container := range slices.Repeat([]any{map[string]any{"name": "app", "env": slices.Repeat([]any{map[string]any{"name": "C"}}, 100)}}, 100) {
		containers, _, _ := unstructured.NestedFieldNoCopy(live[0].Object, "spec", "containers")
		live[0].Object["spec"] = map[string]any{"containers": append(containers.([]any), container)}
	}
	var steps strings.Builder
	after, err := program.Evaluate(t.Context(), conformance.TargetOf(live[0]), conformance.NewWorld(), conformance.Steps{Writer: &steps})
	if err != nil || after != live[0] {
		t.Errorf("a rule that failed changed the object: %v", err)
	}
	if want := "more than 10000 elements (limit Elements)"; !strings.Contains(steps.String(), want) {
		t.Errorf("no step says %q:\n%s", want, &steps)
	}
}
