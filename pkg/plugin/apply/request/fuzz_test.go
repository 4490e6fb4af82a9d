package request

import (
	"encoding/json"
	"path/filepath"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// FuzzPlan: whatever the objects and their books are like, a plan is made or an
// error returned, the input stays as it is, and a JSON patch gives what was wanted.
func FuzzPlan(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, liveText, afterText, fields string) {
		live, after := parsed(liveText), parsed(afterText)
		if live == nil || after == nil {
			t.Skip()
		}
		live.SetUID("u")
		live.SetResourceVersion("7")
		live.SetManagedFields([]metav1.ManagedFieldsEntry{
			entry(testManager, "Apply", "", fields), entry("argocd", "Apply", "", fields), entry("helm", "Update", "", fields),
		})
		before := live.DeepCopy()
		r, err := Plan(Input{Live: live, After: after, Manager: testManager, Types: builtInTypes()})
		if !equal(before.Object, live.Object) {
			t.Fatal("the live object was modified")
		}
		if err != nil || r.Method == None {
			return
		}
		if _, err := Classify(r, after); err != nil {
			t.Fatal(err)
		}
		if r.Method == JSONPatch {
			checkPatch(t, r)
		}
	})
}

func checkPatch(t *testing.T, r Request) {
	t.Helper()
	text, err := json.Marshal(r.Live.Object)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = patch.Apply(text); err != nil {
		t.Fatalf("%v\n%s", err, r.Body)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got, err = canonical(got); err != nil {
		t.Fatal(err)
	}
	if !equal(got, r.Want.Object) {
		t.Errorf("patched %v\nwant    %v\nby      %s", got, r.Want.Object, r.Body)
	}
}

func parsed(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if u.UnmarshalJSON([]byte(text)) != nil || u.IsList() {
		return nil
	}
	return u
}

// addSeeds takes objects and changes from the recordings.
func addSeeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "c*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var states []string
		for _, section := range archive.Files {
			if filepath.Base(section.Name) != "live.yaml" {
				continue
			}
			text, err := yaml.YAMLToJSON(section.Data)
			if err != nil {
				f.Fatal(err)
			}
			states = append(states, string(text))
		}
		if len(states) > 1 {
			f.Add(states[0], states[1], `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:l":{"k:{\"name\":\"x\"}":{".":{}}}}}`)
		}
	}
}
