package conformance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// PatchCase is a patch, a live object, and what comes of it: an archive has its parts
// as files that are named CASE/PART. What a case lacks it takes from the case default,
// if there is one.
type PatchCase struct {
	Name string
	// Parts has the object that is patched (live) and one of these: the object that comes
	// of it (want), that it is the very same (unchanged), words of the error (error), or
	// that there is one which the test itself checks (skipped). The others are the test's.
	Parts map[string]string
}

// ReadPatchCases reads the cases of an archive, in order.
func ReadPatchCases(t testing.TB, archive string) []PatchCase {
	t.Helper()
	all, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	var out []PatchCase
	index, defaults := map[string]int{}, map[string]string{}
	for _, f := range all.Files {
		i := strings.LastIndex(f.Name, "/")
		name, part := f.Name[:max(i, 0)], f.Name[i+1:]
		if name == "default" {
			defaults[part] = string(f.Data)
			continue
		}
		at, known := index[name]
		if !known {
			at = len(out)
			index[name] = at
			out = append(out, PatchCase{Name: name, Parts: map[string]string{}})
		}
		out[at].Parts[part] = string(f.Data)
	}
	for _, c := range out {
		for part, text := range defaults {
			if _, own := c.Parts[part]; !own {
				c.Parts[part] = text
			}
		}
	}
	return out
}

// Check applies the patch to the live object, which must stay as it is, and checks what
// comes of it. It returns both results of apply.
func (c PatchCase) Check(t *testing.T, apply func(live map[string]any) (map[string]any, error)) (map[string]any, error) {
	t.Helper()
	live := ReadMap(t, c.Parts["live"])
	before := runtime.DeepCopyJSON(live)
	got, err := apply(live)
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("the live object was modified:\n%s", diff)
	}
	if err != nil && !diff.Shared(got, live) {
		t.Error("an error, but the object is another one")
	}
	words, fails := c.Parts["error"]
	_, skips := c.Parts["skipped"]
	if fails || skips {
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(words)) {
			t.Fatalf("error %v, want one with %q", err, strings.TrimSpace(words))
		}
		return got, err
	}
	if err != nil {
		t.Fatal(err)
	}
	want := live
	if _, unchanged := c.Parts["unchanged"]; !unchanged {
		want = ReadMap(t, c.Parts["want"])
	} else if !diff.Shared(got, live) {
		t.Error("nothing changed, but the object is another one")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	return got, nil
}

// ReadMap reads an object that may have no kind.
func ReadMap(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}
