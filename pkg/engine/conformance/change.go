package conformance

import (
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// ReadObject reads an object.
func ReadObject(t testing.TB, text []byte) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

// Patched applies a JSON patch. The error is that of a patch which needs what the
// object does not hold.
func Patched(t testing.TB, object *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
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
	return ReadObject(t, text), nil
}

// ChangeBetween is the change from one state to another, as a run would find it.
func ChangeBetween(t testing.TB, before, after *unstructured.Unstructured) *engine.Change {
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
