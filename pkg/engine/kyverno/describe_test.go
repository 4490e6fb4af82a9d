package kyverno

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// describing is a case of testdata/describe/rules.txtar: documents, and what their rules say
// of themselves.
type describing struct {
	Documents []map[string]any
	Want      string
}

func TestDescribe(t *testing.T) {
	conformance.EachCase(t, "testdata/describe/rules.txtar", func(t *testing.T, c *describing) {
		compilation := engine.Compilation{}
		for _, d := range c.Documents {
			compilation.Documents = append(compilation.Documents, engine.NewDocument(&unstructured.Unstructured{Object: d}, ""))
		}
		program, err := New().Compile(compilation)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range program.Describe() {
			got = append(got, described(d)...)
		}
		if diff := cmp.Diff(strings.TrimSpace(c.Want), strings.Join(got, "\n")); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// described has a line for each thing that is said of a rule.
func described(d engine.Description) []string {
	out := []string{fmt.Sprintf("rule %s on %s", d.Rule.Rule, d.Existing)}
	for _, s := range d.Matches {
		out = append(out, "  matches "+conformance.SelectionText(s))
	}
	for _, s := range d.Targets {
		out = append(out, "  targets "+conformance.SelectionText(s))
	}
	for _, text := range d.Where {
		out = append(out, "  where "+text)
	}
	for _, o := range d.Operations {
		out = append(out, "  only on "+string(o))
	}
	for _, path := range d.Changes {
		out = append(out, "  changes "+path)
	}
	for _, a := range d.Asks {
		out = append(out, fmt.Sprintf("  asks %s for %s", a.Of, a.What))
	}
	if d.Gap != nil {
		out = append(out, "  gap "+d.Gap.Error())
	}
	return out
}
