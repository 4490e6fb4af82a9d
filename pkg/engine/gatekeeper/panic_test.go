package gatekeeper

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

type recorded []engine.Step

func (r *recorded) Step(s engine.Step)        { *r = append(*r, s) }
func (r *recorded) Wants(engine.Outcome) bool { return true }

// TestPanicIsTheMutatorsFailure has a mutator that a defect strikes, beside one that is fine.
func TestPanicIsTheMutatorsFailure(t *testing.T) {
	document := func(name string) engine.Document {
		return engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "mutations.gatekeeper.sh/v1", "kind": "AssignMetadata", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"location":   "metadata.labels." + name,
				"parameters": map[string]any{"assign": map[string]any{"value": "x"}},
			},
		}}, "")
	}
	compiled, err := New().Compile(engine.Compilation{Documents: []engine.Document{document("fine"), document("ill")}})
	if err != nil {
		t.Fatal(err)
	}
	p := compiled.(*program)
	for _, m := range p.mutators {
		if m.name == "ill" {
			m.action = struct{ action }{} // whose methods panic
		}
	}
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "default"}}}
	var steps recorded
	out, err := p.Evaluate(t.Context(), engine.Target{Key: engine.KeyOf(live), Object: live}, &engine.World{}, &steps)
	if err != nil || len(out.GetLabels()) != 0 {
		t.Fatalf("labels %v, error %v", out.GetLabels(), err)
	}
	for _, s := range steps {
		var p *engine.PanicError
		if failed := s.Outcome == engine.Failed && errors.As(s.Err, &p); failed != (s.Rule.Policy == "AssignMetadata ill" || s.Rule.Policy == "ill") {
			t.Errorf("%s: %s, %v", s.Rule, s.Outcome, s.Err)
		}
	}
	if len(steps) != 2 {
		t.Errorf("%d steps", len(steps))
	}
}
