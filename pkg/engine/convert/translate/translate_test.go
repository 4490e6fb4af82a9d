package translate_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

// TestText keeps the form of what is written for people.
func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"{{ request.object.metadata.labels.team || '' }}":     `object.metadata.?labels["team"].orValue("")`,
		"{{ request.object.metadata.labels.team || 'none' }}": `object.metadata.?labels["team"].orValue("") != "" ? object.metadata.labels["team"] : "none"`,
		"ns-{{ request.operation }}":                          `"ns-" + request.operation`,
		"{{ request.object.kind }}-{{ element }}":             `object.kind + "-" + string(c)`,
	} {
		s := translate.NewScope(translate.Options{})
		s.Define("element", translate.Expression(expr.Name("c"), translate.Any))
		v, err := s.Text(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := expr.Simplified(v.Plain()).String(); got != want {
			t.Errorf("%s is\n%s\nwants\n%s", text, got, want)
		}
	}
}
