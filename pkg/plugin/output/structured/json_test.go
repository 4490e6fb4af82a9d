package structured

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// What is written without the library is what the library writes.
func TestJSONIsThatOfTheLibrary(t *testing.T) {
	rule := engine.RuleRef{Dialect: "d", Policy: "p", Rule: "r", Via: "v", Origin: "o", Severity: "s"}
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "K"}, Name: "n"}
	step := engine.Step{
		Rule: rule, TriggeredBy: &key, TriggerChangedBy: []engine.RuleRef{rule}, Outcome: engine.Changed, AsCreated: true, NotIdempotent: "i",
		Fields: []engine.FieldChange{{Path: fieldpath.MakePathOrDie("a", "b")}}, Warnings: []engine.Warning{"w"}, Err: errors.New("e\xff"),
	}
	brief := engine.Step{Rule: engine.RuleRef{Dialect: "d", Policy: "p"}, Outcome: engine.Failed, Err: errors.New("")}
	values := []any{
		nil, true, int64(-3), uint64(math.MaxUint64), 0.5, 1e21, "", "a", "<b>&", `"\`, "\n\x00", "\u202e", "\u2028", "\xff",
		map[string]any(nil),
		map[string]any{},
		[]any(nil),
		[]any{},
		[]string{"a"},
		engine.Outcome("o"), step, brief,
	}
	for _, text := range hostile.Texts() {
		values = append(values, map[string]any{text.Text: text.Text})
	}
	values = append(values, map[string]any{"b": values, "a": []any{values, map[string]any{"c": values}}})
	for _, v := range values {
		want, err := indented(v, "  ")
		if err != nil {
			t.Fatal(err)
		}
		if s, isStep := v.(engine.Step); isStep {
			v = stepMembers(&s)
		}
		var got jsonWriter
		if err := got.value(v, "  "); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("%.60v (-want +got):\n%s", v, strings.TrimSpace(diff))
		}
	}
}
