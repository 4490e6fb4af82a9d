package structured

import (
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// written is a value as a jsonWriter writes it.
func written(t *testing.T, v any) string {
	t.Helper()
	var out strings.Builder
	w := newWriter(&out, false)
	if err := errors.Join(w.value(v, "  "), w.Flush()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// What is written without the library is what the library writes.
func TestJSONIsThatOfTheLibrary(t *testing.T) {
	values := []any{
		nil, true, int64(-3), uint64(math.MaxUint64), 0.5, 1e21, "", "a", "<b>&", `"\`, "\n\x00", "é", "\u202e", "\u2028", "\xff",
		map[string]any(nil),
		map[string]any{},
		[]any(nil),
		[]any{},
		[]string{"a"},
		engine.Outcome("o"),
	}
	for _, text := range hostile.Texts() {
		values = append(values, text.Text, map[string]any{text.Text: text.Text})
	}
	values = append(values, map[string]any{"b": values, "a": []any{values, map[string]any{"c": values}}})
	for _, v := range values {
		want, err := encode(v, "  ", indent)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSuffix(want, "\n"), written(t, v)); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", v, diff)
		}
	}
}

// The record of a step has what its JSON has.
func TestStepRecord(t *testing.T) {
	rule := engine.RuleRef{Dialect: "d", Policy: "p", Rule: "r", Via: "v", Origin: "o", Severity: "s"}
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "K"}, Name: "n"}
	whole := engine.Step{
		Rule: rule, Trigger: key, TriggerChangedBy: []engine.RuleRef{rule}, Outcome: engine.Changed, AsCreated: true, NotIdempotent: "i",
		Fields: []engine.FieldChange{{Path: fieldpath.MakePathOrDie("a", "b")}}, Warnings: []engine.Warning{"w"}, Err: errors.New("e\xff"),
	}
	for _, v := range []reflect.Value{reflect.ValueOf(whole), reflect.ValueOf(rule)} {
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "After" { // which is of no JSON
				t.Errorf("%s.%s is not tried", v.Type(), name)
			}
		}
	}
	for _, s := range []engine.Step{whole, {Rule: engine.RuleRef{Dialect: "d", Policy: "p"}, Outcome: engine.Failed, Err: errors.New("")}} {
		want, err := encode(map[string]any{"l": []any{s}}, "", indent)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		w := newWriter(&out, false)
		if err := errors.Join(w.item("l", stepRecord(s)), w.endList("l")); err != nil {
			t.Fatal(err)
		}
		w.end()
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSuffix(want, "\n"), out.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// An object is written in the memory of the one before it.
func TestJSONAllocates(t *testing.T) {
	object := map[string]any{}
	for i := range 20 {
		object[strconv.Itoa(i)] = map[string]any{"name": `say "a"`, "list": []any{"b", map[string]any{"c": map[string]any{}, "d": []any{}}}}
	}
	w := newWriter(io.Discard, false)
	allocs := testing.AllocsPerRun(10, func() {
		if err := errors.Join(w.value(object, ""), w.Flush()); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 2 {
		t.Errorf("an object makes %.0f allocations", allocs)
	}
}
