package impact

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
)

// TestRefusals predicts what a real server is asked about in test/e2e. Cases that
// patch what only a server fills in are left to that test.
func TestRefusals(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "refusals.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			object, patch, ok := bytes.Cut(file.Data, []byte("---\n"))
			if !ok {
				t.Fatal("no patch")
			}
			before := conformance.ReadObject(t, object)
			after, err := patched(t, before, patch)
			if err != nil {
				t.Skip("needs what a server fills in:", err)
			}
			c := changeBetween(t, before, after)
			want := strings.HasPrefix(file.Name, "refused/")
			if got := ImmutableRefusals(c); len(got) > 0 != want {
				t.Errorf("predicted %+v", got)
			}
		})
	}
}
