package structured_test

import (
	"bytes"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// command is what a runner of GitHub Actions acts on where it begins a line.
const command = "::error::x"

// renamed is a change of a ConfigMap that has a command for a name and a value.
func renamed() engine.Change {
	of := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": command}, "data": map[string]any{"k": value},
		}}
	}
	c := engine.Change{Before: of("a"), After: of("\x1b[2J\n" + command)}
	c.Subject = engine.KeyOf(c.After)
	c.Fields = append(c.Fields, diff.Compare(c.Before.Object, c.After.Object, diff.Type{})...)
	return c
}

// Programs get values as they are; only what acts on a terminal is escaped.
func TestValuesAreAsTheyAre(t *testing.T) {
	for what, c := range map[string]struct {
		begin func(output.Options) (output.Format, error)
		want  string
	}{
		"jsonpath": {func(o output.Options) (output.Format, error) {
			return structured.NewJSONPath(o, "{.changes[0].after.data.k}", false)
		}, `\x1b[2J` + "\n" + command},
		"go-template": {func(o output.Options) (output.Format, error) {
			return structured.NewGoTemplate(o, "{{(index .changes 0).after.data.k}}")
		}, `\x1b[2J` + "\n" + command},
		"custom-columns": {func(o output.Options) (output.Format, error) {
			return structured.NewCustomColumns(o, "NAME:.object.name,K:after.data.k")
		}, "NAME         K\n" + command + `   \x1b[2J\n` + command + "\n"},
		"names": {func(o output.Options) (output.Format, error) { return structured.NewNames(o), nil }, "configmap/" + command + "\n"},
		"query": {func(o output.Options) (output.Format, error) {
			o.Query = "changes[].object.name"
			return structured.NewReport(o, true)
		}, "- " + command + "\n"},
	} {
		var out bytes.Buffer
		p, err := c.begin(output.Options{Out: &out})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := errors.Join(outputtest.Printer(p).Print(outputtest.Evaluated(renamed())), outputtest.End(outputtest.Printer(p), evaluation.Summary{})); err != nil || out.String() != c.want {
			t.Errorf("%s: got %v, %q; want %q", what, err, out.String(), c.want)
		}
	}
}

func TestTemplatesRefused(t *testing.T) {
	for what, begin := range map[string]func() error{
		"a JSONPath that does not end":   func() error { _, err := structured.NewJSONPath(output.Options{}, "{.a", false); return err },
		"a template that does not end":   func() error { _, err := structured.NewGoTemplate(output.Options{}, "{{.a"); return err },
		"columns without paths":          func() error { _, err := structured.NewCustomColumns(output.Options{}, "NAME"); return err },
		"a column whose path is no path": func() error { _, err := structured.NewCustomColumns(output.Options{}, "NAME:.a["); return err },
		"a query that does not end":      func() error { _, err := structured.NewReport(output.Options{Query: "a["}, false); return err },
	} {
		if err := begin(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
