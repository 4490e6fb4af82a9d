package mutatingpolicy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// A case is an archive with a section "pod", the expression as it is written,
// and a section for each derivation.
func TestRewrite(t *testing.T) {
	files, err := filepath.Glob("testdata/autogen/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string]string{}
		for _, f := range archive.Files {
			sections[f.Name] = strings.TrimSpace(string(f.Data))
		}
		for _, d := range derivationsFor(nil) {
			want, ok := sections[d.name]
			if !ok {
				t.Errorf("%s: no section %s", file, d.name)
			}
			if diff := cmp.Diff(want, strings.TrimSpace(d.rewrite(sections["pod"]))); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", file, d.name, diff)
			}
		}
	}
}
