package impact

import "testing"

func TestPlaceWithinAndMeets(t *testing.T) {
	for _, c := range []struct {
		p, q          string
		within, meets bool
	}{
		{"spec.template", "spec.template", true, true},
		{"spec.template.spec", "spec.template", true, true},
		{"spec", "spec.template", false, true},
		{"spec.templates", "spec.template", false, false},
		{"spec.containers[*].image", "spec.containers", true, true},
		{"status", "spec", false, false},
	} {
		if isWithin(c.p, c.q) != c.within || meet(c.p, c.q) != c.meets || meet(c.q, c.p) != c.meets {
			t.Errorf("%s within %s: %t, meets it: %t", c.p, c.q, isWithin(c.p, c.q), meet(c.p, c.q))
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
	if at[string](object, "spec", "replicas") != "" || at[string](object, "kind") != "Pod" || at[bool](object, "spec", "replicas") || !at[bool](object, "spec", "paused") {
		t.Error("other texts, or truths")
	}
}
