package outputtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// Golden runs a case for each txtar file that matches a pattern: it compares the sections
// want.FORMAT with what print makes of the section given.yaml, twice the same bytes. If update
// is set, it rewrites them instead.
func Golden[Given any](t *testing.T, pattern string, update bool, print func(t *testing.T, format string, g *Given) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var g Given
			for i := range archive.Files {
				section := &archive.Files[i]
				if section.Name == "given.yaml" {
					if err := yaml.UnmarshalStrict(section.Data, &g); err != nil {
						t.Fatal(err)
					}
				}
				format, ok := strings.CutPrefix(section.Name, "want.")
				if !ok {
					continue
				}
				got := print(t, format, &g)
				if again := print(t, format, &g); got != again {
					t.Errorf("%s: not the same bytes twice", format)
				}
				if update {
					section.Data = []byte(got)
				} else if diff := cmp.Diff(string(section.Data), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", format, diff)
				}
			}
			if !update {
				return
			}
			if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}
