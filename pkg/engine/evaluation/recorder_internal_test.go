package evaluation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// What thousands of rules did to one object is kept once: the list of the program is that of the recorder, unless most of it is
// of rules that did not match.
func TestListsOfStepsAreTakenOver(t *testing.T) {
	outcomes := func(n int, o engine.Outcome) []engine.Step {
		steps := make([]engine.Step, n)
		for i := range steps {
			steps[i] = engine.Step{Rule: engine.RuleRef{Policy: string(o)}, Outcome: o}
		}
		return steps
	}
	all := append(outcomes(1, engine.NotMatched), outcomes(3, engine.Skipped)...)
	r := &recorder{room: 100}
	engine.HandOver(r, all)
	if len(r.steps) != 3 || &r.steps[0] != &all[0] || r.steps[0].Outcome != engine.Skipped || !r.notMatched.Has(engine.RuleRef{Policy: string(engine.NotMatched)}) {
		t.Errorf("%d steps of the list were taken: %v", len(r.steps), r.steps)
	}
	engine.HandOver(r, outcomes(2, engine.Failed))
	if len(r.steps) != 5 || r.steps[2].Outcome != engine.Skipped || r.steps[4].Outcome != engine.Failed {
		t.Errorf("then two more: %v", r.steps)
	}
	r = &recorder{}
	engine.HandOver(r, append(outcomes(3, engine.NotMatched), outcomes(1, engine.Skipped)...))
	if len(r.steps) != 1 || cap(r.steps) > 1 {
		t.Errorf("of a list of four, room for %d steps is kept for %d", cap(r.steps), len(r.steps))
	}
}

// A rule that makes an object too large fails, and the object stays as it was.
func TestLargeObjectsFail(t *testing.T) {
	object := func(v any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "list": v}}
	}
	before, long := object("x"), any(strings.Repeat("x", 1<<20))
	rec := &recorder{state: before, before: before, typ: func() diff.Type { return diff.Type{} }}
	rec.Step(engine.Step{Rule: engine.RuleRef{Policy: "p"}, Outcome: engine.Changed, After: object(slices.Repeat([]any{long}, 40))})
	c, err := (&Evaluation{}).change(t.Context(), engine.Target{Object: before}, true, rec)
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

// What rules name for all of their triggers is kept, so it has a limit.
func TestEffectsHaveALimit(t *testing.T) {
	e := &Evaluation{}
	e.effects.all = make([]*orderedEffect, maxEffects)
	one := &triggered{key: engine.ObjectKey{Version: "v1", GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Name: "a"}, effects: make([]orderedEffect, 1), rec: &recorder{}}
	const want = "ConfigMap a triggers too much: reached the limit of 1000000 targets that rules name for all of their triggers; " +
		"evaluate these rules with fewer triggers or targets, or use wildcards in their targets"
	if err := e.keep(one); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What a policy or an object says may be long; of a reason that quotes it, the ends are kept, and of no other reason anything is lost.
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
		engine.HandOver(r, []engine.Step{{Outcome: o, Err: reasons[0]}, {Outcome: o, Err: reasons[1]}, {Outcome: o, Err: reasons[2]}})
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
