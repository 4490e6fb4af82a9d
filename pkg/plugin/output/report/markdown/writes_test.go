package markdown_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/markdown"
)

func writesPage(t *testing.T, limit int, outcomes ...apply.Outcome) string {
	t.Helper()
	var out strings.Builder
	p := outputtest.Printer(report.New(output.Options{Writes: true}, markdown.NewWrites(output.Options{Out: &out}, limit)))
	var errs []error
	for i, outcome := range outcomes {
		r := apply.Result{Outcome: outcome, Rules: []engine.RuleRef{{Policy: "p", Rule: "r"}}}
		r.Key.Kind, r.Key.Name = "ConfigMap", fmt.Sprintf("c%04d", i)
		if !outcome.Reached() {
			r.Err = fmt.Errorf("%d: %s", i, strings.Repeat("ä`", 1000))
		}
		errs = append(errs, p.Print(output.Written{Result: &r}))
	}
	if err := errors.Join(append(errs, p.Close())...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func repeated(n int, o apply.Outcome) []apply.Outcome {
	out := make([]apply.Outcome, n)
	for i := range out {
		out[i] = o
	}
	return out
}

// What is not as wanted has the room; what else does not fit is counted.
func TestWritesAreCut(t *testing.T) {
	tests := []struct {
		name     string
		outcomes []apply.Outcome
		want     []string
	}{
		{"nothing", nil, []string{"# Mutation policies: no object to write\n"}},
		{"all fits", repeated(20, apply.Applied), []string{"# Mutation policies: 20 of 20 objects as wanted\n", "| applied | 20 |", "`ConfigMap c0019`"}},
		{
			"many were written", append(repeated(5000, apply.Applied), apply.Failed),
			[]string{"5000 of 5001 objects as wanted, 1 not", "`ConfigMap c5000`: ``failed: ", "`ConfigMap c0000`: `serverside-applied`", "**Cut at 16 KiB**: "},
		},
		{
			"many failed", append(repeated(5000, apply.Failed), apply.Managed, apply.Applied),
			[]string{"1 of 5002 objects as wanted, 5000 not, 1 left alone", "| failed | 5000 |", "Not as wanted: 5000 objects", "**Cut at 16 KiB**: "},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := writesPage(t, markdown.MinBytes, tt.outcomes...)
			if len(got) > markdown.MinBytes || strings.Count(got, "<details>") != strings.Count(got, "</details>") {
				t.Errorf("%d bytes:\n%s", len(got), got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got[:min(len(got), 3000)])
				}
			}
			if !strings.HasPrefix(got, markdown.WritesMarker+"\n# ") {
				t.Errorf("no page:\n%s", got[:100])
			}
		})
	}
}
