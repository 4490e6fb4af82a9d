package report_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/github"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/junit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/markdown"
)

// writes are what a case of a run that writes is made of.
type writes struct {
	Problems []string
	Results  []struct {
		Before, After map[string]any
		Outcome       apply.Outcome
		Method        request.Method
		Error         string
		StatusError   string
		Found         bool
		Rules         []engine.RuleRef
	}
}

func (w *writes) results() []apply.Result {
	var out []apply.Result
	for _, in := range w.Results {
		r := apply.Result{Key: engine.KeyOf(object(in.Before)), Outcome: in.Outcome, Method: in.Method, Found: in.Found, Rules: in.Rules}
		if in.After != nil {
			r.Touched = diff.Between(object(in.Before), object(in.After), diff.Type{})
		}
		if in.Error != "" {
			r.Err = &apply.ObjectError{Key: r.Key, Err: errors.New(in.Error)}
		}
		if in.StatusError != "" {
			r.Status = &apply.Result{Key: r.Key, Outcome: apply.Failed, Err: &apply.ObjectError{Key: r.Key, Err: errors.New(in.StatusError)}}
		}
		out = append(out, r)
	}
	return out
}

// writeFormats are those of --report for a run that writes.
var writeFormats = map[string]func(output.Options) report.Report{
	"junit":    func(o output.Options) report.Report { return junit.New(o) },
	"github":   func(o output.Options) report.Report { return github.New(o) },
	"markdown": func(o output.Options) report.Report { return markdown.NewWrites(o, 0) },
}

// TestWrites writes testdata/results/<case>.txtar in every format, and has each read
// by the rules of the format.
func TestWrites(t *testing.T) {
	outputtest.Golden(t, "testdata/results/*.txtar", *update, func(t *testing.T, format string, w *writes) string {
		return read(t, format, reported(t, format, w))
	})
}

func reported(t *testing.T, format string, w *writes) string {
	t.Helper()
	var out bytes.Buffer
	o := output.Options{Out: &out, Writes: true}
	p := outputtest.Printer(report.New(o, writeFormats[format](o)))
	var errs []error
	for _, r := range w.results() {
		errs = append(errs, p.Print(output.Written{Result: &r}))
	}
	for _, problem := range w.Problems {
		errs = append(errs, p.Print(output.Problem{Err: errors.New(problem)}))
	}
	if err := errors.Join(append(errs, p.Close())...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// What is as it should be passes, what was left to others is skipped, and the rest
// is in error.
func TestDescribeWrittenVerdicts(t *testing.T) {
	for outcome, want := range map[apply.Outcome]report.Verdict{
		apply.Applied: report.Pass, apply.Planned: report.Pass, apply.Unchanged: report.Pass,
		apply.Failed: report.Error, apply.Conflicted: report.Error, apply.ServerKeepsValue: report.Error, apply.NotTried: report.Error,
		apply.Declined: report.Skip, apply.Drifted: report.Skip, apply.Managed: report.Skip,
		apply.Deleted: report.Skip, apply.Replaced: report.Skip, apply.Terminating: report.Skip,
	} {
		r := apply.Result{Outcome: outcome, Rules: []engine.RuleRef{rule("a"), rule("b")}}
		got := report.DescribeWritten(output.Written{Result: &r}).Findings
		if len(got) != 2 || got[0].Verdict != want || got[1].Outcome != string(outcome) || got[1].Rule != rule("b") {
			t.Errorf("%s: got %+v, want %s", outcome, got, want)
		}
	}
}
