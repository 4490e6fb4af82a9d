package conformance

import (
	"errors"
	"io"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// ReadObjects reads documents.
func ReadObjects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if u.Object != nil {
			out = append(out, u)
		}
	}
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

// ReadObject reads an object.
func ReadObject(t testing.TB, text []byte) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: ReadMap(t, string(text))}
}

// archives reads the archives of a directory, in the order of their names.
func archives(t testing.TB, dir string) iter.Seq2[string, *txtar.Archive] {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return func(yield func(string, *txtar.Archive) bool) {
		for _, file := range files {
			if !yield(file, readArchive(t, file)) {
				return
			}
		}
	}
}

func readArchive(t testing.TB, file string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.Files) == 0 {
		t.Fatalf("%s has no cases", file)
	}
	return archive
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".txtar") }

func sectionsOf(archive *txtar.Archive) map[string]string {
	out := map[string]string{}
	for _, f := range archive.Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

// EachCase checks every case of an archive as a subtest. A case is a file of it: its
// name is a sentence, and its content a C in YAML, of which an unknown field is an
// error, so that no expectation is lost to a typing mistake.
func EachCase[C any](t *testing.T, archive string, check func(*testing.T, *C)) {
	t.Helper()
	for _, f := range readArchive(t, archive).Files {
		t.Run(f.Name, func(t *testing.T) {
			c := new(C)
			if err := yaml.UnmarshalStrict(f.Data, c); err != nil {
				t.Fatal(err)
			}
			check(t, c)
		})
	}
}

// Golden checks each archive of a directory: its last file is what comes of the others, by their names.
// Update rewrites it.
func Golden(t *testing.T, dir string, update bool, result func(t *testing.T, sections map[string]string) string) {
	t.Helper()
	for file, archive := range archives(t, dir) {
		t.Run(nameOf(file), func(t *testing.T) {
			got, want := result(t, sectionsOf(archive)), &archive.Files[len(archive.Files)-1].Data
			if diff := cmp.Diff(string(*want), got); diff != "" && !update {
				t.Errorf("-want +got:\n%s", diff)
			} else if diff != "" {
				*want = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

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

// ReadPatchCases reads the cases of an archive, in order. The case default is the first one.
func ReadPatchCases(t testing.TB, archive string) (out []PatchCase) {
	t.Helper()
	defaults := map[string]string{}
	for _, f := range readArchive(t, archive).Files {
		name, part := path.Split(f.Name)
		if name == "default/" {
			defaults[part] = string(f.Data)
			continue
		}
		if name = strings.TrimSuffix(name, "/"); len(out) == 0 || out[len(out)-1].Name != name {
			out = append(out, PatchCase{Name: name, Parts: maps.Clone(defaults)})
		}
		out[len(out)-1].Parts[part] = string(f.Data)
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
	words, fails := c.Parts["error"]
	_, skips := c.Parts["skipped"]
	_, unchanged := c.Parts["unchanged"]
	if (err != nil || unchanged) && !diff.Shared(got, live) {
		t.Error("nothing changed, but the object is another one")
	}
	switch {
	case fails || skips:
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(words)) {
			t.Fatalf("error %v, want one with %q", err, strings.TrimSpace(words))
		}
	case err != nil:
		t.Fatal(err)
	case !unchanged:
		if diff := cmp.Diff(ReadMap(t, c.Parts["want"]), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	return got, err
}
