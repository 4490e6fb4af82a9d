package output_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// changedChange is a change of an object with three fields, of a kind.
func changedChange(kind string) *engine.Change {
	of := func(a, b string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "x", "uid": "u"},
			"data": map[string]any{"a": a, "b": b, "same": "c2FtZQ=="},
		}}
	}
	c := &engine.Change{Before: of("Zmlyc3Q=", "c2Vjb25k"), After: of("Zm91cnRo", "ZmlmdGg=")}
	c.Subject.Kind, c.Subject.Name = kind, "x"
	c.Fields = append(c.Fields, diff.Compare(c.Before.Object, c.After.Object, diff.Type{})...)
	return c
}

func TestUnifiedShowsTheChangeAlone(t *testing.T) {
	c := changedChange("ConfigMap")
	c.Fields = c.Fields[:1]
	others := changedChange("ConfigMap").Fields[1:]
	d := output.Differ{ContextLines: -1}
	got, err := d.Unified(c, others)
	want := "--- ConfigMap x (before)\n+++ ConfigMap x (after)\n@@ -3 +3 @@ data\n-  a: Zmlyc3Q=\n+  a: Zm91cnRo\n"
	if err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestUnifiedContextLines(t *testing.T) {
	for lines, want := range map[int]int{-1: 0, 0: 5, 1: 2, 99: 6} { // of the two lines above and the four below
		d := output.Differ{ContextLines: lines}
		got, err := d.Unified(changedChange("ConfigMap"), nil)
		if n := strings.Count(got, "\n "); err != nil || n != want {
			t.Errorf("%d: got %v and %d lines of context, want %d\n%s", lines, err, n, want, got)
		}
	}
}

func TestTextsOfAMissingObject(t *testing.T) {
	var d output.Differ
	c := changedChange("ConfigMap")
	c.Before = nil
	if before, after, err := d.Texts(c, nil); err != nil || before.Text != "" || !strings.Contains(after.Text, "Zm91cnRo") {
		t.Errorf("got %v, %q and %q", err, before.Text, after.Text)
	}
	c.Before, c.After = changedChange("ConfigMap").Before, nil
	if before, after, err := d.Texts(c, nil); err != nil || after.Text != "" || !strings.Contains(before.Text, "Zmlyc3Q=") {
		t.Errorf("got %v, %q and %q", err, before.Text, after.Text)
	}
}

// No key of an object is so long, or so odd, that it cannot be shown.
func TestKeysThatYAMLReadsBadly(t *testing.T) {
	for _, key := range []string{strings.Repeat("k", 1025), strings.Repeat("k", 100_000), strings.Repeat("\u202e", 2000), strings.Repeat("a: b\n", 500), "? ", "<<", "\x7f"} {
		text, err := output.MarshalYAML(map[string]any{key: int64(1), "b": 1.5, "c": uint64(1 << 63)})
		if err != nil {
			t.Errorf("%.20q: %v", key, err)
		}
		var back map[string]any
		if err := yaml.Unmarshal(text, &back); len(key) < 1024 && key != "<<" && (err != nil || back[key] != 1.0) {
			t.Errorf("%.20q is %v after %v", key, back[key], err)
		}
	}
}

// program writes a shell script that stands for the user's program.
func program(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, command string, add func(*output.External)) (string, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	c, err := output.FindExternal(t.Context(), command, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	add(c)
	err = c.Compare()
	if err := c.End(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return out.String(), err
}

func TestExternalNames(t *testing.T) {
	out, err := run(t, program(t, `for f in "$1"/*; do n=$(basename "$f"); echo "$n: $(cat "$f") to $(cat "$2/$n")"; done; exit 1`), func(c *output.External) {
		for _, name := range []string{"v1.ConfigMap.shop.a", "v1.ConfigMap.shop.a", "rbac/../x:y"} {
			if err := c.Add(name, "old", "new"); err != nil {
				t.Fatal(err)
			}
		}
	})
	want := "rbac_.._x_y: old to new\nv1.ConfigMap.shop.a: old to new\nv1.ConfigMap.shop.a.2: old to new\n"
	if out != want || err != nil {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}
