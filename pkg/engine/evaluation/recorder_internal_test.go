package evaluation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// A rule that makes an object too large fails, and the object stays as it was.
func TestLargeObjectsFail(t *testing.T) {
	object := func(v any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "list": v}}
	}
	before, long := object("x"), any(strings.Repeat("x", 1<<20))
	rec := &recorder{state: before, before: before, typ: func() diff.Type { return diff.Type{} }}
	rec.Step(engine.Step{Rule: engine.RuleRef{Policy: "p"}, Outcome: engine.Changed, After: object(slices.Repeat([]any{long}, 40))})
	p := &pass{Evaluation: &Evaluation{}, ctx: t.Context(), rec: rec}
	c, err := p.change(engine.Target{Object: before}, true)
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Steps[0]; s.Outcome != engine.Failed || s.Err == nil || !strings.Contains(s.Err.Error(), "builds at once") {
		t.Errorf("%+v", s)
	}
	if len(c.Fields) > 0 || c.After != before {
		t.Errorf("%d fields change", len(c.Fields))
	}
}

// What a policy or an object says may be long; of a reason that quotes it, the ends are kept, and of no other
// reason anything is lost.
func TestLongReasonsAreCut(t *testing.T) {
	for _, o := range []engine.Outcome{engine.Failed, engine.Denied, engine.Unsupported} {
		cause := errors.New("not found")
		reasons := []error{
			fmt.Errorf("configmap shop/%s: %w", strings.Repeat("z", 1<<20), cause),
			fmt.Errorf("configmap shop/%s: %w", strings.Repeat("z", 100), cause),
			nil,
		}
		r := &recorder{}
		r.Step(engine.Step{Outcome: o, Err: reasons[0]})
		engine.HandOver(r, []engine.Step{{Outcome: o, Err: reasons[0]}, {Outcome: o, Err: reasons[1]}, {Outcome: o, Err: reasons[2]}}, "")
		for i, want := range []string{"configmap " + engine.Cut + " not found", "configmap " + engine.Cut + " not found", reasons[1].Error(), ""} {
			got := ""
			if err := r.steps[i].Err; err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s, step %d: %.100q, want %.100q", o, i, got, want)
			}
		}
		if !errors.Is(r.steps[2].Err, cause) {
			t.Errorf("%s: the cause is lost", o)
		}
	}
}
