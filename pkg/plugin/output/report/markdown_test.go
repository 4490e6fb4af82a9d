package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// configMapKey is a change of a ConfigMap that gets a file of some lines.
func configMapKey(name string, lines int) engine.Change {
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
		f.Writer = &rule
		c.Fields = append(c.Fields, f)
	}
	return c
}

func page(t *testing.T, limit, problems int, changes ...engine.Change) string {
	t.Helper()
	var out strings.Builder
	p := outputtest.Printer(report.NewMarkdown(output.Options{Out: &out}, limit))
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
			out = append(out, configMapKey(fmt.Sprintf("settings-%04d", i), lines))
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
			got := page(t, report.MaxMarkdownBytes, tt.problems, tt.changes...)
			if len(got) > report.MaxMarkdownBytes {
				t.Errorf("%d bytes", len(got))
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got[:min(len(got), 3000)])
				}
			}
			if !strings.HasPrefix(got, report.MarkdownMarker+"\n# Mutation policies") || strings.Count(got, "<details>") != strings.Count(got, "</details>") {
				t.Errorf("no whole page:\n%s", got)
			}
			if tt.name == "all fits" && strings.Contains(got, "Cut at") {
				t.Error("cut, though all fits")
			}
		})
	}
}

// A page of a conversion is no longer than a comment may be.
func TestConversion(t *testing.T) {
	var b bytes.Buffer
	p := outputtest.Printer(report.NewMarkdown(output.Options{Out: &b, Converts: true}, 0))
	for i := range 200 {
		text := strings.Repeat("a: b\n", 100)
		if err := p.Print(output.Converted{Policy: fmt.Sprint("Policy p", i), Old: text, New: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(p.Print(output.Conversion{Title: "200 rules"}), p.Close()); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if want := "**Cut at 64 KiB**: of 200 policies, "; len(got) > report.MaxMarkdownBytes || !strings.HasPrefix(got, "# 200 rules\n\n## `Policy p0`\n") || !strings.Contains(got, want) {
		t.Errorf("%d bytes, want %q:\n%s", len(got), want, got[:min(len(got), 1000)])
	}
}

// A page of a comparison is no longer than a comment may be, and begins and ends as one that is not cut.
func TestComparison(t *testing.T) {
	for _, tt := range []struct {
		name           string
		objects, lines int
		idle           int // rules that nothing exercised
		want           []string
	}{
		{"all fits", 3, 5, 1, []string{"settings-0000", "settings-0002"}},
		{"there are too many", 3000, 5, 1, []string{"**Cut at 64 KiB**: of 3000 differences, ", "settings-0000"}},
		{"one is too long", 1, 20_000, 1, []string{"**Cut at 64 KiB**: of 1 difference, 1 are shown without their fields and 0 not at all"}},
		{"there are many rules", 300, 5, 3000, []string{"**Cut at 64 KiB**", "settings-0000", "the rest of it is left out"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			p := outputtest.Printer(report.NewMarkdown(output.Options{Out: &b, Compares: true}, 0))
			for i := range tt.objects {
				c := configMapKey(fmt.Sprintf("settings-%04d", i), tt.lines)
				old, changed := c, c
				old.After, changed.Before = c.Before, c.Before
				r := &compare.Result{
					Subject: c.Subject, Verdict: compare.Differs, Operations: []engine.Operation{engine.OperationUpdate}, Everywhere: true,
					Changes: [2]*engine.Change{compare.Old: &old, compare.New: &changed},
				}
				for _, f := range c.Fields {
					r.Fields = append(r.Fields, compare.Field{FieldChange: f})
				}
				if err := p.Print(output.Compared{Result: r, Difference: r.Difference()}); err != nil {
					t.Fatal(err)
				}
			}
			s := compare.Summary{Conclusion: compare.SomeDiffer, Counts: compare.Counts{Objects: tt.objects, Changed: tt.objects, Verdicts: map[compare.Verdict]int{compare.Differs: tt.objects}}}
			for i := range tt.idle {
				s.Rules[compare.Old] = append(s.Rules[compare.Old], compare.Exercise{Rule: engine.RuleRef{Dialect: "kyverno", Policy: fmt.Sprint("p", i), Rule: "r"}, Missing: "an object"})
			}
			if err := p.Print(output.Comparison{Summary: s}); err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			got := b.String()
			if len(got) > report.MaxMarkdownBytes || !strings.HasPrefix(got, "## Comparison\n\nDIFFERENT") {
				t.Errorf("%d bytes:\n%s", len(got), got[:min(len(got), 1000)])
			}
			for _, want := range append(tt.want, "## What was exercised") {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got[:min(len(got), 3000)])
				}
			}
			if cut := strings.Contains(got, "Cut at"); cut != (tt.name != "all fits") {
				t.Errorf("cut: %t", cut)
			}
		})
	}
}

func writesPage(t *testing.T, limit int, outcomes ...write.Outcome) string {
	t.Helper()
	var out strings.Builder
	p := outputtest.Printer(report.New(output.Options{Writes: true}, report.NewMarkdownWrites(output.Options{Out: &out}, limit)))
	var errs []error
	for i, outcome := range outcomes {
		r := write.Result{Outcome: outcome, Rules: []engine.RuleRef{{Policy: "p", Rule: "r"}}}
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

func repeated(n int, o write.Outcome) []write.Outcome {
	out := make([]write.Outcome, n)
	for i := range out {
		out[i] = o
	}
	return out
}

// What is not as wanted has the room; what else does not fit is counted.
func TestWritesAreCut(t *testing.T) {
	tests := []struct {
		name     string
		outcomes []write.Outcome
		want     []string
	}{
		{"nothing", nil, []string{"# Mutation policies: no object to write\n"}},
		{"all fits", repeated(20, write.Applied), []string{"# Mutation policies: 20 of 20 objects as wanted\n", "| applied | 20 |", "`ConfigMap c0019`"}},
		{
			"many were written", append(repeated(5000, write.Applied), write.Failed),
			[]string{"5000 of 5001 objects as wanted, 1 not", "`ConfigMap c5000`: ``failed: ", "`ConfigMap c0000`: `serverside-applied`", "**Cut at 16 KiB**: "},
		},
		{
			"many failed", append(repeated(5000, write.Failed), write.Managed, write.Applied),
			[]string{"1 of 5002 objects as wanted, 5000 not, 1 left alone", "| failed | 5000 |", "Not as wanted: 5000 objects", "**Cut at 16 KiB**: "},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := writesPage(t, report.MinMarkdownBytes, tt.outcomes...)
			if len(got) > report.MinMarkdownBytes || strings.Count(got, "<details>") != strings.Count(got, "</details>") {
				t.Errorf("%d bytes:\n%s", len(got), got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got[:min(len(got), 3000)])
				}
			}
			if !strings.HasPrefix(got, report.MarkdownWritesMarker+"\n# ") {
				t.Errorf("no page:\n%s", got[:100])
			}
		})
	}
}
