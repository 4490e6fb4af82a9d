package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Each path of a copy has its text, paths that the object does not have are left out, and the object stays as it was.
func TestCopy(t *testing.T) {
	object := func() map[string]any {
		return map[string]any{
			"a":    map[string]any{"x": "1", "y": "2", "~/": map[string]any{"z": "3"}},
			"list": []any{map[string]any{"name": "n", "v": "4"}, map[string]any{"name": "m", "v": "5"}},
			"b":    map[string]any{"x": "6"},
		}
	}
	of := object()
	c := diff.CopyOf(of)
	for _, p := range []fieldpath.Path{
		fieldpath.MakePathOrDie("a", "x"), fieldpath.MakePathOrDie("a", "none"), fieldpath.MakePathOrDie("a", "~/", "z"),
		fieldpath.MakePathOrDie("list", key("name", "m"), "v"), fieldpath.MakePathOrDie("list", 0, "v"), fieldpath.MakePathOrDie("list", 7),
		fieldpath.MakePathOrDie("b"), fieldpath.MakePathOrDie("b", "x"),
	} {
		c.Replace(p, "***")
	}
	want := map[string]any{
		"a":    map[string]any{"x": "***", "y": "2", "~/": map[string]any{"z": "***"}},
		"list": []any{map[string]any{"name": "n", "v": "***"}, map[string]any{"name": "m", "v": "***"}},
		"b":    "***",
	}
	if d := cmp.Diff(want, c.Object()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(object(), of); d != "" {
		t.Errorf("the object is modified (-want +got):\n%s", d)
	}
}
