package plugin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
)

// TestConvertWritesPlainFiles converts policies and rules with hostile names into a directory: each has a
// file there, with a name that a shell takes for nothing else.
func TestConvertWritesPlainFiles(t *testing.T) {
	dir := t.TempDir()
	var policies []any
	for _, text := range hostile.Texts() {
		policies = append(policies, map[string]any{
			"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": text.Text},
			"spec": map[string]any{"rules": []any{map[string]any{
				"name": text.Text, "match": map[string]any{"resources": map[string]any{"kinds": []any{"ConfigMap"}}},
				"mutate": map[string]any{"patchStrategicMerge": map[string]any{"data": map[string]any{"a": "b"}}},
			}}},
		})
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": policies})
	if err != nil {
		t.Fatal(err)
	}
	x := tampered{t: t}
	out := filepath.Join(dir, "new")
	code, shown, errOut := x.run("convert", "-p", write(t, dir, "policies.json", string(list)), "-f", write(t, dir, "object.json", liveConfigMap), "--variants=0", "-o", out)
	for _, text := range []string{shown, errOut} {
		if err := hostile.Terminal(text); err != nil {
			t.Error(err)
		}
		if err := hostile.Runner(text); err != nil {
			t.Error(err)
		}
	}
	for line := range strings.Lines(errOut) {
		if !regexp.MustCompile(`^(\s|converted: |note: |warning: |not converted: |progress: |\d+ rules of |compared on |POLICY/RULE +RESULT|\S.{0,200} +(verified|not \w+) +[-\d])`).MatchString(line) {
			t.Errorf("a line of its own: %q", line)
		}
	}
	files, err := os.ReadDir(out)
	if err != nil || len(files) == 0 || len(files) != strings.Count("\n"+errOut, "\nconverted: ")+strings.Count("\n"+errOut, "\nnot converted: ") {
		t.Errorf("exit code %d, %d files of %d policies, %v\n%.3000s", code, len(files), len(policies), err, errOut)
	}
	for _, f := range files {
		if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*\.yaml$`).MatchString(f.Name()) {
			t.Errorf("file %q", f.Name())
		}
		content, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		above, _, _ := strings.Cut(string(content), "\napiVersion:")
		if err := hostile.Terminal(above); err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
	}
	if beside, err := os.ReadDir(dir); err != nil || len(beside) != 3 {
		t.Errorf("beside the directory: %v, %v", beside, err)
	}
}
