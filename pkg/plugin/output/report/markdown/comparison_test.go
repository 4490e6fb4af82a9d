package markdown_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/markdown"
)

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
		{"one is too long", 1, 20_000, 1, []string{"**Cut at 64 KiB**: of 1 differences, 1 are shown without their fields and 0 not at all"}},
		{"there are many rules", 300, 5, 3000, []string{"**Cut at 64 KiB**", "settings-0000", "the rest of it is left out"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			p := outputtest.Printer(markdown.NewComparison(output.Options{Out: &b}))
			for i := range tt.objects {
				c := configMap(fmt.Sprintf("settings-%04d", i), tt.lines)
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
			s := compare.Summary{Conclusion: compare.SomeDiffer, Objects: tt.objects, Changed: tt.objects, Verdicts: map[compare.Verdict]int{compare.Differs: tt.objects}}
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
			if len(got) > markdown.MaxBytes || !strings.HasPrefix(got, "## Comparison\n\nDIFFERENT") {
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
