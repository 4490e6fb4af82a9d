package undo_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/randomobject"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
)

func object(t *testing.T, text []byte) *unstructured.Unstructured {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRestore(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := map[string][]byte{}
			for _, f := range archive.Files {
				s[f.Name] = f.Data
			}
			before, live := object(t, s["before.yaml"]), object(t, s["live.yaml"])
			o := journalled(t, before, object(t, s["after.yaml"]), diff.Type{})
			given := live.DeepCopy()
			r := o.Restore(live)
			if d := cmp.Diff(object(t, s["want.yaml"]).Object, r.Want.Object); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			kept := ""
			for _, k := range r.Kept {
				kept += k.Error() + "\n"
			}
			if d := cmp.Diff(string(s["kept"]), kept); d != "" {
				t.Errorf("kept (-want +got):\n%s", d)
			}
			if d := cmp.Diff(given, live); d != "" {
				t.Errorf("the live object was modified:\n%s", d)
			}
		})
	}
}

// secretWrite is a write of a Secret as a journal without secrets keeps it.
func secretWrite(before, after map[string]any) undo.Write {
	state := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": data}}
	}
	o := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Secret"}, Version: "v1", Name: "s"}
	return undo.Write{Partial: redact.Partial(diff.Between(state(before), state(after), diff.Type{}), o)}
}

func TestRestoreOfWithheldValues(t *testing.T) {
	live := object(t, []byte(`{apiVersion: v1, kind: Secret, metadata: {name: s, resourceVersion: "2"}, data: {a: YQ==, b: Yg==}}`))
	w := secretWrite(map[string]any{"a": "eA=="}, map[string]any{"a": "YQ==", "b": "Yg=="})
	w.ResourceVersion = "2"
	o := undo.Object{Writes: []undo.Write{w}}
	r := o.Restore(live)
	want := object(t, []byte(`{apiVersion: v1, kind: Secret, metadata: {name: s, resourceVersion: "2"}, data: {a: YQ==}}`))
	if d := cmp.Diff(want, r.Want); d != "" {
		t.Errorf("what was added is not taken away (-want +got):\n%s", d)
	}
	const text = "data.a is not put back: it holds a value of a Secret, which the journal does not keep (--journal-secrets)"
	if len(r.Kept) != 1 || r.Kept[0].Error() != text {
		t.Errorf("kept %v", r.Kept)
	}
	live.SetResourceVersion("3")
	if r := o.Restore(live); len(r.Kept) != 2 || r.Want != live {
		t.Errorf("the Secret was written since, and yet only %v is kept", r.Kept)
	}
}

func TestRestoreOfAWriteInDoubt(t *testing.T) {
	before := object(t, []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "1"}}`))
	after := object(t, []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "2"}}`))
	o := journalled(t, before, after, diff.Type{})
	o.Writes[0].InDoubt = true
	if r := o.Restore(after); !diff.Same(r.Want.Object, before.Object) || len(r.Kept) > 0 {
		t.Errorf("stored: %+v", r)
	}
	if r := o.Restore(before); len(r.Kept) > 0 || r.Want != before {
		t.Errorf("not stored: %+v", r)
	}
}

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
