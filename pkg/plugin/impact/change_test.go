package impact

import (
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// patched applies a JSON patch. The error is that of a patch which needs what the
// object does not hold.
func patched(t testing.TB, object *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	t.Helper()
	data, err := yaml.YAMLToJSON(patch)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if text, err = operations.Apply(text); err != nil {
		return nil, err
	}
	return conformance.ReadObject(t, text), nil
}

// changeBetween is the change from one state to another, as a run would find it.
func changeBetween(t testing.TB, before, after *unstructured.Unstructured) *engine.Change {
	t.Helper()
	known, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &engine.Change{Subject: engine.KeyOf(before), Before: before, After: after}
	typ := diff.TypeOf(t.Context(), known, before.GroupVersionKind())
	c.Fields = append(c.Fields, diff.Compare(before.Object, after.Object, typ)...)
	return c
}
