package plan_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/randomobject"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

func TestDrift(t *testing.T) {
	files, err := filepath.Glob("testdata/drift-*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := sections(t, filepath.Base(file))
			planned := change(object(t, s["planned.before.yaml"]), object(t, s["planned.after.yaml"]))
			text, err := json.Marshal(plan.NewEntry(&planned).Masked())
			if err != nil {
				t.Fatal(err)
			}
			var e plan.Entry
			if err := json.Unmarshal(text, &e); err != nil {
				t.Fatal(err)
			}
			if err := e.Validate(); err != nil {
				t.Fatal(err)
			}
			now := change(object(t, s["now.before.yaml"]), object(t, s["now.after.yaml"]))
			got := ""
			if drift := e.Drift(&now); drift != nil {
				got = drift.Error() + "\n"
				if shown := drift.Now; now.Changed() && len(shown.Fields) != len(now.Fields) {
					t.Errorf("%d fields are shown, and %d would change", len(shown.Fields), len(now.Fields))
				}
			}
			if d := cmp.Diff(s["want"], got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if strings.Contains(got, "hunter22") {
				t.Error("the drift shows a secret")
			}
		})
	}
}

// What was planned on an object is not drift on that object, whatever it is.
func TestDriftOfTheSameObjectIsNil(t *testing.T) {
	for seed := range uint64(500) {
		m := randomobject.New(seed)
		before := &unstructured.Unstructured{Object: m.Object()}
		c := change(before, &unstructured.Unstructured{Object: m.Change(before.Object)})
		if e := plan.NewEntry(&c); c.Changed() {
			if drift := e.Drift(&c); drift != nil {
				t.Fatalf("seed %d: %v", seed, drift)
			}
		}
	}
}

// An entry stays the same, whichever other one it shares parts with.
func TestSharing(t *testing.T) {
	var last plan.Entry
	for seed := range uint64(500) {
		m := randomobject.New(seed)
		before := &unstructured.Unstructured{Object: m.Object()}
		c := change(before, &unstructured.Unstructured{Object: m.Change(before.Object)})
		e := plan.NewEntry(&c)
		shared := e.Sharing(&last)
		if d := cmp.Diff(e.Change(), shared.Change()); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
		c = change(before, c.After)
		if same := plan.NewEntry(&c).Sharing(&e); len(e.Fields) > 0 && &same.Fields[0] != &e.Fields[0] {
			t.Errorf("seed %d: equal fields are not shared", seed)
		}
		last = e
	}
}

// A value that is set after the plan was made is another value, even if it
// is that of a Secret that was read in the meantime.
func TestDriftOfAValueThatBecameSecret(t *testing.T) {
	settings := func(mode string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}, "data": map[string]any{"mode": mode},
		}}
	}
	change := func(from string) *engine.Change {
		before, after := settings(from), settings("strict")
		return &engine.Change{Subject: engine.KeyOf(before), Before: before, After: after, Fields: []engine.FieldChange{{
			Path: fieldpath.MakePathOrDie("data", "mode"), Kind: engine.Replaced, From: from, To: "strict",
		}}}
	}
	entry := plan.NewEntry(change("lax")).Masked()
	if drift := entry.Drift(change("lax")); drift != nil {
		t.Errorf("the same value: %v", drift)
	}
	if drift := entry.Drift(change("somebody-elses")); drift == nil {
		t.Error("another value is no drift")
	}
}
