package objectdiff_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
)

// changed is a change of an object with three fields, of a kind.
func changed(kind string) *engine.Change {
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
	c := changed("ConfigMap")
	c.Fields = c.Fields[:1]
	others := changed("ConfigMap").Fields[1:]
	d := objectdiff.Differ{ContextLines: -1}
	got, err := d.Unified(c, others)
	want := "--- ConfigMap x (before)\n+++ ConfigMap x (after)\n@@ -3 +3 @@ data\n-  a: Zmlyc3Q=\n+  a: Zm91cnRo\n"
	if err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestUnifiedContextLines(t *testing.T) {
	for lines, want := range map[int]int{-1: 0, 0: 5, 1: 2, 99: 6} { // of the two lines above and the four below
		d := objectdiff.Differ{ContextLines: lines}
		got, err := d.Unified(changed("ConfigMap"), nil)
		if n := strings.Count(got, "\n "); err != nil || n != want {
			t.Errorf("%d: got %v and %d lines of context, want %d\n%s", lines, err, n, want, got)
		}
	}
}

func TestTextsOfAMissingObject(t *testing.T) {
	var d objectdiff.Differ
	c := changed("ConfigMap")
	c.Before = nil
	if before, after, err := d.Texts(c, nil); err != nil || before.Text != "" || !strings.Contains(after.Text, "Zm91cnRo") {
		t.Errorf("got %v, %q and %q", err, before.Text, after.Text)
	}
	c.Before, c.After = changed("ConfigMap").Before, nil
	if before, after, err := d.Texts(c, nil); err != nil || after.Text != "" || !strings.Contains(before.Text, "Zmlyc3Q=") {
		t.Errorf("got %v, %q and %q", err, before.Text, after.Text)
	}
}
