package place_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact/place"
)

func TestElementsOfListsAreAllAlike(t *testing.T) {
	keyed := fieldpath.MakePathOrDie("spec", "containers", fieldpath.KeyByFields("name", "app"), "args", 0)
	set := fieldpath.MakePathOrDie("metadata", "finalizers", fieldpath.PathElement{Value: ptr(value.NewValueInterface("a"))})
	for want, path := range map[string]fieldpath.Path{"spec.containers.[].args.[]": keyed, "metadata.finalizers.[]": set} {
		if d := cmp.Diff(place.At(want), place.Of(path)); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestPlacesHoldEachOther(t *testing.T) {
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
		p, q := place.At(c.p), place.At(c.q)
		if p.Within(q) != c.within || p.Meets(q) != c.meets || q.Meets(p) != c.meets {
			t.Errorf("%s within %s: %t, meets it: %t", c.p, c.q, p.Within(q), p.Meets(q))
		}
	}
}

func TestWhatIsNotThereIsNothing(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"replicas": int64(2), "paused": true, "ratio": 1.5}, "kind": "Pod"}
	if v := place.Value(object, "kind", "name"); v != nil {
		t.Errorf("below a text: %v", v)
	}
	if v := place.Value(object, "status", "phase"); v != nil {
		t.Errorf("below nothing: %v", v)
	}
	replicas := place.Value(object, "spec", "replicas")
	if place.Number(replicas, 1) != 2 || place.Number(nil, 1) != 1 || place.Number("2", 1) != 1 || place.Number(1.5, 0) != 1 {
		t.Error("other numbers")
	}
	if place.Text(replicas) != "" || place.Text(object["kind"]) != "Pod" || place.Bool(replicas) || !place.Bool(place.Value(object, "spec", "paused")) {
		t.Error("other texts, or truths")
	}
}
