package conformance

import (
	"testing"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// EachCase checks every case of an archive as a subtest. A case is a file of it: its
// name is a sentence, and its content a C in YAML, of which an unknown field is an
// error, so that no expectation is lost to a typing mistake.
func EachCase[C any](t *testing.T, archive string, check func(*testing.T, *C)) {
	t.Helper()
	all, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Files) == 0 {
		t.Fatalf("%s has no cases", archive)
	}
	for _, f := range all.Files {
		t.Run(f.Name, func(t *testing.T) {
			c := new(C)
			if err := yaml.UnmarshalStrict(f.Data, c); err != nil {
				t.Fatal(err)
			}
			check(t, c)
		})
	}
}
