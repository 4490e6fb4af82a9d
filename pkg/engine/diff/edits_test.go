package diff

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEdits(t *testing.T) {
	type object = map[string]any
	for _, c := range []struct {
		name          string
		before, after object
		want          string
	}{
		{"nothing", object{"a": int64(1)}, object{"a": int64(1)}, `[]`},
		{"a field is added", object{}, object{"a": int64(1)}, `[{"op":"add","path":"/a","value":1}]`},
		{"a null is added", object{}, object{"a": nil}, `[{"op":"add","path":"/a","value":null}]`},
		{"a null is removed", object{"a": nil}, object{}, `[{"op":"remove","path":"/a"}]`},
		{"keys are escaped", object{}, object{"a/b~c": "x"}, `[{"op":"add","path":"/a~1b~0c","value":"x"}]`},
		{"a map becomes a string", object{"a": object{}}, object{"a": "x"}, `[{"op":"replace","path":"/a","value":"x"}]`},
		{"an empty map becomes an empty list", object{"a": object{}}, object{"a": []any{}}, `[{"op":"replace","path":"/a","value":[]}]`},
		{
			"an element is put first",
			object{"l": []any{"b", "c"}},
			object{"l": []any{"a", "b", "c"}},
			`[{"op":"add","path":"/l/0","value":"a"}]`,
		},
		{
			"an element goes from the middle",
			object{"l": []any{"a", "b", "c"}},
			object{"l": []any{"a", "c"}},
			`[{"op":"remove","path":"/l/1"}]`,
		},
		{
			"several go from the end backwards",
			object{"l": []any{"a", "b", "c"}},
			object{"l": []any{"x"}},
			`[{"op":"replace","path":"/l/0","value":"x"},{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"}]`,
		},
		{
			"equal neighbours are distinguished by position",
			object{"l": []any{"a", "a"}},
			object{"l": []any{"a", "a", "a"}},
			`[{"op":"add","path":"/l/2","value":"a"}]`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := json.Marshal(Edits(c.before, c.after))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, string(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestEditsWithinReplacesAParent(t *testing.T) {
	list := func(n int, v string) []any {
		l := make([]any, n)
		for i := range l {
			l[i] = map[string]any{"v": v}
		}
		return l
	}
	paths := func(t *testing.T, before, after map[string]any, limit int) []string {
		all, ok := EditsWithin(before, after, limit)
		if !ok || len(all) > limit {
			t.Errorf("%d edits, limit %d", len(all), limit)
		}
		var out []string
		for _, e := range all {
			out = append(out, e.Pointer())
		}
		return out
	}
	before := map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"a": list(6, "1"), "b": list(2, "1")}}
	after := map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"a": list(6, "2"), "b": list(2, "2")}}
	if d := cmp.Diff([]string{"/spec/a", "/spec/b/0/v", "/spec/b/1/v"}, paths(t, before, after, 5)); d != "" {
		t.Errorf("the one list that has too many is replaced (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"/spec"}, paths(t, before, after, 1)); d != "" {
		t.Errorf("their parent is, where both are too many (-want +got):\n%s", d)
	}

	labels := map[string]any{}
	for i := range 8 {
		labels[fmt.Sprint(i)] = "x"
	}
	bare := map[string]any{"metadata": map[string]any{"labels": map[string]any{}, "annotations": map[string]any{}}}
	full := map[string]any{"metadata": map[string]any{"labels": labels, "annotations": labels}}
	if d := cmp.Diff([]string{"/metadata/annotations", "/metadata/labels"}, paths(t, bare, full, 5)); d != "" {
		t.Errorf("metadata is never replaced (-want +got):\n%s", d)
	}
}
