package structured_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

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
