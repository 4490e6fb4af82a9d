package impact

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// TestRefusals predicts what a real server is asked about in test/e2e. Cases that
// patch what only a server fills in are left to that test.
func TestRefusals(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "refusals.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			object, patch, ok := bytes.Cut(file.Data, []byte("---\n"))
			if !ok {
				t.Fatal("no patch")
			}
			before := read(t, object)
			after, err := patched(t, before, patch)
			if err != nil {
				t.Skip("needs what a server fills in:", err)
			}
			c := changed(t, before, after)
			want := strings.HasPrefix(file.Name, "refused/")
			if got := Refusals(c); len(got) > 0 != want {
				t.Errorf("predicted %+v", got)
			}
		})
	}
}

func read(t testing.TB, text []byte) *unstructured.Unstructured {
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

func patched(t *testing.T, object *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
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
	return read(t, text), nil
}

// changed compares two states as a run would.
func changed(t testing.TB, before, after *unstructured.Unstructured) *engine.Change {
	t.Helper()
	known, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &engine.Change{Subject: engine.KeyOf(before), Before: before, After: after}
	typ := engine.TypeOf(t.Context(), known, before.GroupVersionKind())
	for _, f := range fielddiff.Compare(before.Object, after.Object, typ) {
		c.Fields = append(c.Fields, engine.FieldChange{Field: f})
	}
	return c
}
