package impact

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// FuzzLive turns one object into another, whatever they hold: what a cluster stores
// may be anything.
func FuzzLive(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			object, _, _ := bytes.Cut(file.Data, []byte("---\n"))
			text, err := yaml.YAMLToJSON(object)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text, []byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": 1}`))
		}
	}
	f.Fuzz(func(t *testing.T, from, to []byte) {
		var before, after map[string]any
		if json.Unmarshal(from, &before) != nil || json.Unmarshal(to, &after) != nil || before == nil || after == nil {
			t.Skip("no objects")
		}
		for _, name := range []string{"apiVersion", "kind"} {
			after[name] = before[name]
		}
		c := &engine.Change{Before: &unstructured.Unstructured{Object: before}, After: &unstructured.Unstructured{Object: after}}
		c.Subject = engine.KeyOf(c.Before)
		c.Fields = append(c.Fields, diff.Compare(before, after, diff.Type{})...)
		if err := (&Reviewer{FieldManager: "kubectl-mutate"}).live(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	})
}
