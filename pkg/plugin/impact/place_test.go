package impact

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

func TestPlaceOf(t *testing.T) {
	keyed := fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "app"), "args", 0)
	set := fieldpath.MakePathOrDie("metadata", "finalizers", fieldpath.PathElement{Value: ptr(value.NewValueInterface("a"))})
	for want, path := range map[string]fieldpath.Path{"spec.containers.[].args.[]": keyed, "metadata.finalizers.[]": set} {
		if d := cmp.Diff(placeAt(want), placeOf(path)); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestPlaceWithinAndMeets(t *testing.T) {
	for _, c := range []struct {
		p, q          string
		within, meets bool
	}{
		{"spec.template", "spec.template", true, true},
		{"spec.template.spec", "spec.template", true, true},
		{"spec", "spec.template", false, true},
		{"spec.templates", "spec.template", false, false},
		{"status", "spec", false, false},
	} {
		p, q := placeAt(c.p), placeAt(c.q)
		if p.within(q) != c.within || p.meets(q) != c.meets || q.meets(p) != c.meets {
			t.Errorf("%s within %s: %t, meets it: %t", c.p, c.q, p.within(q), p.meets(q))
		}
	}
}

func TestValueAtOfAbsentFields(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"replicas": int64(2), "paused": true, "ratio": 1.5}, "kind": "Pod"}
	if v := valueAt(object, "kind", "name"); v != nil {
		t.Errorf("below a text: %v", v)
	}
	if v := valueAt(object, "status", "phase"); v != nil {
		t.Errorf("below nothing: %v", v)
	}
	replicas := valueAt(object, "spec", "replicas")
	if numberOf(replicas, 1) != 2 || numberOf(nil, 1) != 1 || numberOf("2", 1) != 1 || numberOf(1.5, 0) != 1 {
		t.Error("other numbers")
	}
	if textOf(replicas) != "" || textOf(object["kind"]) != "Pod" || boolOf(replicas) || !boolOf(valueAt(object, "spec", "paused")) {
		t.Error("other texts, or truths")
	}
}
