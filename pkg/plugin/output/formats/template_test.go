package formats_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
)

// A template is given as with kubectl get: behind the format, beside it, or in a file.
func TestTemplates(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "template")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path, goPath, columns, empty := file("{.kind}"), file("{{.kind}}"), file("KIND\n.object.kind\n"), file("")
	for _, c := range []struct {
		format, template, want, fails string
	}{
		{format: "jsonpath={.kind}", want: "PreviewReport"},
		{format: "jsonpath", template: "{.kind}", want: "PreviewReport"},
		{format: "jsonpath-as-json={.kind}", want: "[\n    \"PreviewReport\"\n]\n"},
		{format: "jsonpath-file=" + path, want: "PreviewReport"},
		{format: "go-template={{.kind}}", want: "PreviewReport"},
		{format: "template={{.kind}}", want: "PreviewReport"},
		{format: "go-template-file", template: goPath, want: "PreviewReport"},
		{format: "templatefile=" + goPath, want: "PreviewReport"},
		{format: "custom-columns=KIND:.object.kind", want: "KIND\n"},
		{format: "custom-columns-file=" + columns, want: "KIND\n"},
		{format: "jsonpath=", fails: "no template given"},
		{format: "go-template", fails: "no template given"},
		{format: "custom-columns", fails: "-o custom-columns=HEADER:PATH"},
		{format: "jsonpath-file=" + empty, fails: "no template in the file"},
		{format: "go-template-file=" + filepath.Join(t.TempDir(), "none"), fails: "reading the template"},
		{format: "jsonpath={.kind}", template: "{.kind}", fails: "leave one of them out"},
		{format: "json", template: "{.kind}", fails: "a template works with -o jsonpath="},
		{format: "json=x", fails: "unknown output format"},
	} {
		var out bytes.Buffer
		p, err := formats.NewPreview(c.format, output.Options{Out: &out, Template: c.template})
		if err == nil {
			err = outputtest.End(p, evaluation.Summary{})
		}
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("-o %s --template %q: got %v, want %q", c.format, c.template, err, c.fails)
		case c.fails == "" && (err != nil || out.String() != c.want):
			t.Errorf("-o %s --template %q: got %q, %v; want %q", c.format, c.template, &out, err, c.want)
		}
	}
}

// Formats that list objects alone have no place for reasons.
func TestExplains(t *testing.T) {
	for format, want := range map[string]bool{"diff": true, "wide": true, "jsonpath={.a}": true, "table": false, "name": false} {
		if got := formats.Explains(format); got != want {
			t.Errorf("%s: got %v", format, got)
		}
	}
	if list := formats.ExplainNames(); strings.Contains(list, "table") || !strings.Contains(list, "wide") {
		t.Errorf("got %s", list)
	}
}
