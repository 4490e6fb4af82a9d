package diff_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// A difference costs its path, and what is equal beside it nothing.
func TestCompareAllocates(t *testing.T) {
	before := map[string]any{"spec": map[string]any{"a": "x", "b": int64(1)}, "metadata": map[string]any{"name": "n", "labels": map[string]any{"a": "b"}}}
	after := map[string]any{"spec": map[string]any{"a": "x", "b": int64(2)}, "metadata": before["metadata"]}
	allocs := testing.AllocsPerRun(10, func() {
		if n := len(diff.Compare(before, after, diff.Type{})); n != 1 {
			t.Fatalf("%d differences", n)
		}
	})
	if allocs > 5 { // two paths, two names in them, and the list
		t.Errorf("one difference makes %.0f allocations", allocs)
	}
}
