package markdown_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/markdown"
)

// configMap is a change of a ConfigMap that gets a file of some lines.
func configMap(name string, lines int) engine.Change {
	object := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": data,
		}}
	}
	text := strings.Repeat("line of "+name+" ```\n", lines)
	c := engine.Change{Before: object(map[string]any{}), After: object(map[string]any{"file": text})}
	c.Subject = engine.KeyOf(c.After)
	rule := engine.RuleRef{Policy: "p", Rule: "r"}
	c.Steps = []engine.Step{{Rule: rule, Outcome: engine.Changed}}
	for _, f := range diff.Compare(c.Before.Object, c.After.Object, diff.Type{}) {
		f.Rule = rule
		c.Fields = append(c.Fields, f)
	}
	return c
}

func page(t *testing.T, limit, problems int, changes ...engine.Change) string {
	t.Helper()
	var out strings.Builder
	p := outputtest.Printer(markdown.NewPreview(output.Options{Out: &out}, limit))
	var summary evaluation.Summary
	var errs []error
	for _, c := range changes {
		summary.Add(&c)
		errs = append(errs, p.Print(output.Evaluated{Change: &c}))
	}
	for i := range problems {
		errs = append(errs, p.Print(output.Problem{Err: fmt.Errorf("problem %d %s", i, strings.Repeat("ä`", 1000))}))
	}
	if err := errors.Join(append(errs, outputtest.End(p, summary))...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPreviewIsCut(t *testing.T) {
	many := func(n, lines int) []engine.Change {
		var out []engine.Change
		for i := range n {
			out = append(out, configMap(fmt.Sprintf("settings-%04d", i), lines))
		}
		return out
	}
	tests := []struct {
		name     string
		changes  []engine.Change
		problems int
		want     []string
	}{
		{"all fits", many(3, 5), 0, []string{"3 of 3 objects would change", "+    line of settings-0002"}},
		{
			"one is too long", append(many(1, 20_000), many(2, 5)[1]), 0,
			[]string{"### `~ ConfigMap settings-0000", "+    line of settings-0001", "of 2 changes, 1 are shown without their diff and 0 not at all"},
		},
		{"there are too many", many(3000, 5), 0, []string{"3000 of 3000 objects would change", "**Cut at 64 KiB**: of 3000 changes, "}},
		{"with many problems", many(3000, 5), 100, []string{"- error: ``", "- and 80 more errors", "**Cut at 64 KiB**"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := page(t, markdown.MaxBytes, tt.problems, tt.changes...)
			if len(got) > markdown.MaxBytes {
				t.Errorf("%d bytes", len(got))
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got[:min(len(got), 3000)])
				}
			}
			if !strings.HasPrefix(got, markdown.Marker+"\n# Mutation policies") || strings.Count(got, "<details>") != strings.Count(got, "</details>") {
				t.Errorf("no whole page:\n%s", got)
			}
			if tt.name == "all fits" && strings.Contains(got, "Cut at") {
				t.Error("cut, though all fits")
			}
		})
	}
}
