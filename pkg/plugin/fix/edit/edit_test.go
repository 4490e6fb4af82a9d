package edit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"golang.org/x/tools/txtar"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fix/edit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

var update = flag.Bool("update", false, "write what comes out into the cases")

// documents reads the documents of a file, each to stay as it is.
func documents(t testing.TB, text []byte) []edit.Document {
	t.Helper()
	read, err := input.ReadText(t.Context(), "file", text)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]edit.Document, len(read))
	for i, d := range read {
		out[i] = edit.Document{Before: d.Object().Object, After: d.Object().Object}
	}
	return out
}

// TestApply has a case in each file: the text of a file, edits "DOCUMENT OPERATION POINTER [VALUE]", and the text
// that comes out, or the reason of a refusal. The words in the first line change how both files are written.
func TestApply(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d cases: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			form := func(text []byte) []byte {
				first, _, _ := strings.Cut(string(archive.Comment), "\n")
				if strings.Contains(first, "no line break at the end") {
					text = bytes.TrimSuffix(text, []byte("\n"))
				}
				if strings.Contains(first, "Windows") {
					text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
				}
				if strings.Contains(first, "byte order mark") {
					text = append([]byte("\uFEFF"), text...)
				}
				return text
			}
			text := form(archive.Files[0].Data)
			all := documents(t, text)
			patches := make([][]json.RawMessage, len(all))
			for line := range strings.Lines(string(archive.Files[1].Data)) {
				words := strings.SplitN(strings.TrimSpace(line), " ", 4)
				i, err := strconv.Atoi(words[0])
				if err != nil {
					t.Fatal(err)
				}
				operation := map[string]any{"op": words[1], "path": words[2]}
				if len(words) > 3 {
					operation["value"] = json.RawMessage(words[3])
				}
				encoded, err := json.Marshal(operation)
				if err != nil {
					t.Fatal(err)
				}
				patches[i] = append(patches[i], encoded)
			}
			for i, operations := range patches {
				all[i].After = patched(t, all[i].Before, operations)
			}
			got, err := edit.Apply(t.Context(), text, all)
			if err != nil {
				got = form([]byte(err.Error() + "\n"))
			}
			if want := form(archive.Files[2].Data); !bytes.Equal(got, want) {
				if *update {
					back := bytes.ReplaceAll(bytes.TrimPrefix(got, []byte("\uFEFF")), []byte("\r\n"), []byte("\n"))
					archive.Files[2].Data = back
					if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func patched(t testing.TB, object map[string]any, operations []json.RawMessage) map[string]any {
	t.Helper()
	if len(operations) == 0 {
		return object
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(after, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
