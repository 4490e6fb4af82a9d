package kyverno

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jsonpatch"
)

// A text that many objects have in common is read once.
func TestJSONPatchIsReadOnce(t *testing.T) {
	var known engine.TextCache[jsonpatch.Patch]
	read := func() {
		if _, err := compileJSONPatch(&known, "- {op: add, path: /metadata/labels/a, value: b}"); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n > 2 { // of the interfaces around it
		t.Errorf("%v allocations for a text that was read before", n)
	}
}
