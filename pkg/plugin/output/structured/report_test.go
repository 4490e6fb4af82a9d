package structured_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
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

// What the server reads as the same value is not in a patch: the engine has decided what
// changes.
func TestPatchesHoldTheFieldsOfTheChange(t *testing.T) {
	state := func(label, memory string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"label": label, "memory": memory}}
	}
	c := engine.Change{
		Subject: engine.ObjectKey{Version: "v1", Name: "a"}, Before: state("old", "1024Mi"), After: state("new", "1Gi"),
		Fields: []engine.FieldChange{{Path: fieldpath.MakePathOrDie("label"), Kind: engine.Replaced, From: "old", To: "new"}},
	}
	var out bytes.Buffer
	if err := structured.NewPatches(output.Options{Out: &out}).Print(output.Show(output.Evaluated{Change: &c}, false)); err != nil {
		t.Fatal(err)
	}
	const want = `{"object":{"apiVersion":"v1","kind":"","name":"a"},"patch":[{"op":"replace","path":"/label","value":"new"}]}` + "\n"
	if out.String() != want {
		t.Errorf("got %s, want %s", &out, want)
	}
}

// The error of a template or a query says what failed, and nothing of the objects.
func TestErrorsRepeatNoObject(t *testing.T) {
	jsonPath := func(text string) func(output.Options) (output.Format, error) {
		return func(o output.Options) (output.Format, error) { return structured.NewJSONPath(o, text, false) }
	}
	template := func(text string) func(output.Options) (output.Format, error) {
		return func(o output.Options) (output.Format, error) { return structured.NewGoTemplate(o, text) }
	}
	query := func(text string) func(output.Options) (output.Format, error) {
		return func(o output.Options) (output.Format, error) {
			o.Query = text
			return structured.NewReport(o, false)
		}
	}
	columns := func(text string) func(output.Options) (output.Format, error) {
		return func(o output.Options) (output.Format, error) { return structured.NewCustomColumns(o, text) }
	}
	for what, c := range map[string]struct {
		begin func(output.Options) (output.Format, error)
		want  string
	}{
		"an index that is too large":  {jsonPath("{.changes[99999].object}"), "-o jsonpath: array index out of bounds: index 99999, length 2"},
		"a filter of what is no list": {jsonPath("{.changes[0].after.data.k[?(@.x)]}"), "-o jsonpath: what is filtered is no list"},
		"an index of an object":       {jsonPath("{.changes[0].after[1]}"), "-o jsonpath: map[string]interface {} is not array or slice"},
		"a function of numbers":       {query("abs(changes)"), `query: a function was given a value of another type than it takes, which is "number"`},
		"a function that is not":      {query("nope(changes)"), "query: unknown function: nope"},
		"a field of a text":           {template(`{{(index .changes 0).object.kind.x}}`), "can't evaluate field x"},
		"a range over a text":         {template(`{{range (index .changes 0).after.data.k}}{{end}}`), "range can't iterate over a value of this type"},
		"objects that are compared":   {template(`{{eq .changes .changes}}`), "non-comparable type"},
		"a template with a long text": {template(`{{slice "` + strings.Repeat("x", 5000) + `" 9999}}`), "out of range"},
		"a column of what is no list": {columns("K:.after.data.k[?(@.x)]"), "ConfigMap ::error::x: column K: what is filtered is no list"},
	} {
		var out bytes.Buffer
		p, err := c.begin(output.Options{Out: &out})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		shown := outputtest.Printer(p)
		for range 2 {
			if err == nil {
				err = shown.Print(outputtest.Evaluated(renamed()))
			}
		}
		if err == nil {
			err = outputtest.End(shown, evaluation.Summary{})
		}
		switch {
		case err == nil:
			t.Errorf("%s: no error, printed %q", what, &out)
		case !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 || strings.Contains(err.Error(), "[2J"):
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}
