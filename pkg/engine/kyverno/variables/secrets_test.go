package variables_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// told is a text, and what it was made of.
type told struct {
	Text any
	From []any
}

// notes are Secrets that record what is reported to them.
type notes struct{ told []told }

func (*notes) Any() bool                      { return true }
func (*notes) Known(any) bool                 { return false }
func (n *notes) Derive(text any, from ...any) { n.told = append(n.told, told{text, from}) }

func TestRenderMarksDerivedSecrets(t *testing.T) {
	for text, want := range map[string][]told{
		"{{ pin }}":              nil,
		"pin {{ pin }}":          {{"pin 4711", []any{"pin ", "4711"}}},
		"{{ pin }}{{ n }}":       {{"47117", []any{"4711", int64(7)}}},
		"{{{{ pin }}.}}":         {{"4711.", []any{"4711", "."}}, {`invalid JMESPath expression "4711.": Invalid token: tNumber`, []any{"4711."}}},
		"plain":                  nil,
		"{{to_string('{{n}}')}}": {{"to_string('7')", []any{"to_string('", int64(7), "')"}}, {"7", []any{"7"}}},
	} {
		var secrets notes
		s := variables.NewScope(jmespath.New(time.Unix(0, 0), 1).WithSecrets(&secrets), engine.DefaultLimits())
		s.Set("pin", "4711")
		s.Set("n", int64(7))
		template, err := variables.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, failed := template.Render(s)
		if diff := cmp.Diff(want, secrets.told); diff != "" {
			t.Errorf("%s (its error is %v), told (-want +got):\n%s", text, failed, diff)
		}
	}
}
