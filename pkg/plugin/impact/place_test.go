package impact

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
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

func TestPlacesMeetAsEachOfThemDoes(t *testing.T) {
	var all []place
	var set *placeSet
	candidates := []string{"spec", "spec.a", "spec.a.[]", "spec.a.[].b", "spec.ab", "status", "metadata.labels.x", "metadata.labels"}
	for _, text := range []string{"spec.a.[].b", "metadata.labels", "metadata.labels.x"} {
		all, set = append(all, placeAt(text)), set.with(placeAt(text))
		for _, candidate := range candidates {
			p := placeAt(candidate)
			if want := slices.ContainsFunc(all, p.meets); set.meet(p) != want {
				t.Errorf("%s meets one of %v: %t, want %t", candidate, all, !want, want)
			}
		}
	}
	if (*placeSet)(nil).meet(nil) || !set.meet(nil) {
		t.Error("the root is not above all places, or above none")
	}
}

// TestManyFieldsAreLookedUp: comparing each field with each other one would take a million allocations.
func TestManyFieldsAreLookedUp(t *testing.T) {
	const fields = 1000
	change := &engine.Change{Before: &unstructured.Unstructured{}, After: &unstructured.Unstructured{}}
	for i := range fields {
		change.Fields = append(change.Fields, engine.FieldChange{Path: fieldpath.MakePathOrDie("data", fmt.Sprint("key-", i))})
	}
	var again repeat
	again.note(change)
	again.places = again.places.with(placeAt("data.other"))
	allocations := testing.AllocsPerRun(1, func() {
		if found := again.notIdempotent(change); len(found) != 1 || len(found[0].Fields) != fields {
			t.Errorf("the impacts are %v", found)
		}
	})
	if allocations > 20*fields {
		t.Errorf("%d fields take %.0f allocations", fields, allocations)
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
