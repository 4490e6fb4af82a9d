package undo_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/randomobject"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
)

// journalled is a write as a journal keeps it.
func journalled(t *testing.T, before, after *unstructured.Unstructured, typ diff.Type) undo.Object {
	t.Helper()
	text, err := json.Marshal(diff.Between(before, after, typ))
	if err != nil {
		t.Fatal(err)
	}
	var kept diff.Partial
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if err := kept.Validate(); err != nil {
		t.Fatal(err)
	}
	return undo.Object{Object: engine.ObjectKey{Name: "t"}, Writes: []undo.Write{{Partial: kept}}}
}

// Whatever was changed, taking it back gives the very object that was there: the
// order of lists included.
func TestUndoGivesTheOriginal(t *testing.T) {
	for seed := range uint64(2000) {
		m, object, typ := randomobject.Start(t, seed)
		before := &unstructured.Unstructured{Object: object}
		after := &unstructured.Unstructured{Object: m.Change(object)}
		o := journalled(t, before, after, typ)
		r := o.Restore(after)
		if len(r.Kept) > 0 {
			t.Fatalf("seed %d: kept %v", seed, r.Kept)
		}
		if d := cmp.Diff(before.Object, r.Want.Object); d != "" && len(diff.Edits(before.Object, r.Want.Object)) > 0 {
			t.Fatalf("seed %d: undone (-before +undone):\n%s\nthe change was (-before +after):\n%s", seed, d, cmp.Diff(before.Object, after.Object))
		}
	}
}

// What others have changed since is left as it is: of each field the
// result has either what was there before the run, or what is there now.
func TestUndoLeavesWhatOthersChanged(t *testing.T) {
	for seed := range uint64(1000) {
		m, object, typ := randomobject.Start(t, seed)
		before := &unstructured.Unstructured{Object: object}
		after := &unstructured.Unstructured{Object: m.Change(object)}
		live := &unstructured.Unstructured{Object: m.Change(after.Object)}
		o := journalled(t, before, after, typ)
		r := o.Restore(live)
		for _, f := range diff.Compare(live.Object, r.Want.Object, typ) {
			if f.Kind != engine.Replaced {
				continue
			}
			if was, _ := diff.Lookup(before.Object, f.Path); !diff.Same(was, f.To) {
				t.Fatalf("seed %d: %v from %v to %v, was %v", seed, f, f.From, f.To, was)
			}
		}
	}
}
