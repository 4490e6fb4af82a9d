package diff_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/randomobject"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// random is a pair of states of an object, and how the server compares them.
func random(t *testing.T, seed uint64) (before, after *unstructured.Unstructured, typ diff.Type) {
	t.Helper()
	m, object, typ := randomobject.Start(t, seed)
	return &unstructured.Unstructured{Object: object}, &unstructured.Unstructured{Object: m.Change(object)}, typ
}

// What is kept of an object is enough to know the patch, and the values of every
// field, also after it was written to a file and read again.
func TestPartialGivesTheSamePatch(t *testing.T) {
	for seed := range uint64(1000) {
		before, after, typ := random(t, seed)
		kept := reread(t, diff.Between(before, after, typ))
		if err := errors.Join(kept.Validate(), kept.ValidateShown()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := operations(t, before.Object, after.Object)
		got := operations(t, kept.Before, kept.After)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d: another patch (-whole +kept):\n%s", seed, d)
		}
		change := kept.Change(engine.KeyOf(before))
		for i, f := range diff.Compare(before.Object, after.Object, typ) {
			g := change.Fields[i]
			if !g.Path.Equals(f.Path) || g.Kind != f.Kind || !diff.Same(g.From, f.From) || !diff.Same(g.To, f.To) {
				t.Fatalf("seed %d: field %v from %v to %v became %v from %v to %v", seed, f, f.From, f.To, g, g.From, g.To)
			}
		}
	}
}

func reread(t *testing.T, in diff.Partial) diff.Partial {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out diff.Partial
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func operations(t *testing.T, before, after map[string]any) string {
	t.Helper()
	text, err := json.MarshalIndent(diff.Edits(before, after), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
