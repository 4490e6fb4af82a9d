package plan_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

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
