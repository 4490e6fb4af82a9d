package report_test

import (
	"bytes"
	"errors"
	"flag"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/github"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/junit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/markdown"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/policyreport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/sarif"
)

var update = flag.Bool("update", false, "rewrite the expected output")

// given is what a case is made of: changes whose fields belong to the last rule
// that changed the object, and what else went wrong.
type given struct {
	Problems []struct{ Origin, Policy, Rule, Text string }
	Changes  []struct {
		Before, After map[string]any
		Steps         []step
		Impacts       []engine.Impact
	}
}

type step struct {
	Dialect, Policy, Rule, Via, Origin string
	Reason, NotIdempotent, Trigger     string
	Outcome                            engine.Outcome
	AsCreated                          bool
	Warnings                           []engine.Warning
}

func (s *step) engine() engine.Step {
	if s.Dialect == "" {
		s.Dialect = "kyverno"
	}
	out := engine.Step{
		Rule:    engine.RuleRef{Dialect: s.Dialect, Policy: s.Policy, Rule: s.Rule, Via: s.Via, Origin: s.Origin},
		Outcome: s.Outcome, AsCreated: s.AsCreated, NotIdempotent: s.NotIdempotent, Warnings: s.Warnings,
	}
	if s.Reason != "" {
		out.Err = errors.New(s.Reason)
	}
	if s.Trigger != "" {
		out.Trigger = engine.ObjectKey{Name: s.Trigger}
		out.Trigger.Kind = "Secret"
	}
	return out
}

func object(m map[string]any) *unstructured.Unstructured {
	if m == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: m}
}

func (g *given) changes() []engine.Change {
	var out []engine.Change
	for _, in := range g.Changes {
		c := engine.Change{Before: object(in.Before), After: object(in.After), Impacts: in.Impacts}
		if c.After == nil {
			c.After = c.Before
		}
		c.Subject = engine.KeyOf(c.After)
		var last engine.RuleRef
		for i := range in.Steps {
			s := in.Steps[i].engine()
			if s.Outcome == engine.Changed {
				last = s.Rule
			}
			c.Steps = append(c.Steps, s)
		}
		for _, f := range diff.Compare(in.Before, c.After.Object, diff.Type{}) {
			f.Rule = last
			c.Fields = append(c.Fields, f)
		}
		out = append(out, c)
	}
	return out
}

// formats are those of --report, but for what they write into.
var formats = map[string]func(output.Options) output.Format{
	"junit":  func(o output.Options) output.Format { return report.New(o, junit.New(o)) },
	"sarif":  func(o output.Options) output.Format { return report.New(o, sarif.New(o)) },
	"github": func(o output.Options) output.Format { return report.New(o, github.New(o)) },
	"policyreport": func(o output.Options) output.Format {
		return report.New(o, policyreport.New(policyreport.WGPolicy(), o))
	},
	"openreports": func(o output.Options) output.Format {
		return report.New(o, policyreport.New(policyreport.OpenReports(), o))
	},
	"markdown": func(o output.Options) output.Format { return markdown.NewPreview(o, 0) },
}

// TestGolden writes testdata/<case>.txtar in every format.
func TestGolden(t *testing.T) {
	outputtest.Golden(t, "testdata/*.txtar", *update, func(t *testing.T, format string, g *given) string {
		return read(t, format, written(t, format, g))
	})
}

// read returns a report in which nothing acts on a terminal.
func read(t *testing.T, format, report string) string {
	t.Helper()
	if err := hostile.Terminal(report); err != nil {
		t.Errorf("%s: %v", format, err)
	}
	return report
}

func written(t *testing.T, format string, g *given) string {
	t.Helper()
	var out bytes.Buffer
	o := output.Options{Out: &out, Context: output.Context{Version: "v1.2.3"}}
	p := outputtest.Printer(formats[format](o))
	var summary evaluation.Summary
	for _, c := range g.changes() {
		summary.Add(&c)
		if err := p.Print(output.Evaluated{Change: &c}); err != nil {
			t.Fatal(err)
		}
	}
	for _, problem := range g.Problems {
		err := errors.New(problem.Text)
		if problem.Policy != "" {
			err = &engine.CompileError{Origin: problem.Origin, Policy: problem.Policy, Rule: problem.Rule, Err: err}
		}
		if err := p.Print(output.Problem{Err: err}); err != nil {
			t.Fatal(err)
		}
	}
	if err := outputtest.End(p, summary); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
