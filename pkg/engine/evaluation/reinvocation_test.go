package evaluation_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// rounds is a program that remembers its rounds.
type rounds struct {
	again bool
	seen  *[]any
}

func (rounds) Rules() []engine.RuleRef        { return nil }
func (rounds) Selections() []engine.Selection { return nil }
func (rounds) Describe() []engine.Description { return nil }

func (r rounds) Evaluate(_ context.Context, t engine.Target, _ *engine.World, _ engine.Sink) (*unstructured.Unstructured, error) {
	if t.Request.Reinvocation {
		*r.seen = append(*r.seen, t.Invocation.Kept)
		return t.Object, nil
	}
	*r.seen = append(*r.seen, "first")
	t.Invocation.Kept, t.Invocation.Again = "kept", r.again
	return t.Object, nil
}

func TestReinvocationKeepsState(t *testing.T) {
	for again, want := range map[bool]int{true: 2, false: 1} {
		var seen, other []any
		programs := []engine.Program{rounds{again, &seen}, rounds{false, &other}}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		e := evaluation.New(programs, &engine.World{}, evaluation.Options{})
		if _, err := e.Evaluate(t.Context(), engine.Target{Key: engine.KeyOf(u), Object: u}, true); err != nil {
			t.Fatal(err)
		}
		if len(seen) != want || len(other) != 1 || (again && seen[1] != "kept") {
			t.Errorf("again %t: %v and %v", again, seen, other)
		}
	}
}
