package report_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

func rule(name string) engine.RuleRef {
	return engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: name}
}

// The steps of one rule come to one verdict: that which says the most.
func TestDescribeVerdicts(t *testing.T) {
	outcomes := func(o ...engine.Outcome) []engine.Outcome { return o }
	tests := []struct {
		steps   []engine.Outcome
		changes bool // a field of the object
		verdict report.Verdict
		outcome engine.Outcome
	}{
		{outcomes(engine.Changed), true, report.Fail, engine.Changed},
		{outcomes(engine.Unchanged, engine.Changed, engine.Skipped), true, report.Fail, engine.Changed},
		{outcomes(engine.Changed), false, report.Pass, engine.Changed},
		{outcomes(engine.Skipped, engine.Unchanged), false, report.Pass, engine.Unchanged},
		{outcomes(engine.Skipped, engine.Skipped), false, report.Skip, engine.Skipped},
		{outcomes(engine.Changed, engine.Failed), true, report.Error, engine.Failed},
		{outcomes(engine.Unsupported, engine.Denied, engine.Failed), false, report.Error, engine.Denied},
		{outcomes(engine.Unsupported), false, report.Error, engine.Unsupported},
		{outcomes(), true, report.Fail, engine.Changed}, // a field that no step claims
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.steps, tt.changes), func(t *testing.T) {
			c := engine.Change{}
			for _, o := range tt.steps {
				c.Steps = append(c.Steps, engine.Step{Rule: rule("r"), Outcome: o, Err: errors.New("reason")})
			}
			if tt.changes {
				c.Fields = []engine.FieldChange{{Writer: new(rule("r")), Path: fieldpath.MakePathOrDie("a"), Kind: engine.Added, To: "b"}}
			}
			got := report.Describe(&c).Findings
			if len(got) != 1 || got[0].Verdict != tt.verdict || got[0].Outcome != string(tt.outcome) {
				t.Errorf("got %+v, want %s, %s", got, tt.verdict, tt.outcome)
			}
			if tt.outcome == engine.Changed && len(got) == 1 && len(got[0].Reasons) > 0 {
				t.Errorf("reasons %q of a rule that changed the object", got[0].Reasons)
			}
		})
	}
}

// An impact is a warning of the rules whose fields it is about.
func TestDescribeImpacts(t *testing.T) {
	path := func(parts ...any) fieldpath.Path { return fieldpath.MakePathOrDie(parts...) }
	c := engine.Change{
		Steps: []engine.Step{
			{Rule: rule("labels"), Outcome: engine.Changed}, {Rule: rule("image"), Outcome: engine.Changed}, {Rule: rule("lost"), Outcome: engine.Changed},
		},
		Fields: []engine.FieldChange{
			{Writer: new(rule("labels")), Path: path("metadata", "labels"), Kind: engine.Added},
			{Writer: new(rule("image")), Path: path("spec", "image"), Kind: engine.Added},
		},
		Impacts: []engine.Impact{
			{Code: "owned", Text: "of a label", Fields: []fieldpath.Path{path("metadata", "labels", "team")}},
			{Code: "managed", Text: "the whole"},
			{Code: "overwritten", Text: "nothing is left", Fields: []fieldpath.Path{path("data")}},
			{Code: "invalid", Text: "all of it", Fields: []fieldpath.Path{path("spec")}},
			{Code: "invalid", Text: "one", Fields: []fieldpath.Path{path("spec", "image")}},
		},
	}
	got := map[string][]string{}
	for _, f := range report.Describe(&c).Findings {
		got[f.Rule.Rule] = f.Warnings
	}
	want := map[string][]string{
		"labels": {"owned: of a label", "managed: the whole", "overwritten: nothing is left"},
		"image":  {"managed: the whole", "invalid: all of it", "invalid: one"},
		"lost":   nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlaceOf(t *testing.T) {
	tests := []struct {
		origin string
		want   report.Place
	}{
		{"policies/team.yaml:12", report.Place{Path: "policies/team.yaml", Line: 12}},
		{"./a:b/../c.yaml:1", report.Place{Path: "c.yaml", Line: 1}},
		{"cluster", report.Place{}},
		{"stdin:3", report.Place{}},
		{"https://example.invalid/p.yaml:3", report.Place{}},
		{"team.yaml:0", report.Place{}},
		{"team.yaml:x", report.Place{}},
		{"", report.Place{}},
	}
	for _, tt := range tests {
		if got := report.PlaceOf(tt.origin); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.origin, got, tt.want)
		}
	}
}

// Where one side denies the object, each rule of it says so and why, and no verdict has a rule without a
// message.
func TestDescribeComparedSaysWhyOnEachRule(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}}}
	denies, changes := engine.RuleRef{Dialect: "kyverno", Policy: "denies"}, engine.RuleRef{Dialect: "kyverno", Policy: "changes"}
	side := func(s engine.Step) *engine.Change {
		return &engine.Change{Subject: engine.KeyOf(object), Before: object, After: object, Steps: []engine.Step{s}}
	}
	for _, v := range []compare.Verdict{compare.OnlyOldDenies, compare.NotComparable} {
		outcome := engine.Denied
		if v == compare.NotComparable {
			outcome = engine.Failed
		}
		r := &compare.Result{Subject: engine.KeyOf(object), Verdict: v, Everywhere: true, Changes: [2]*engine.Change{
			compare.Old: side(engine.Step{Rule: denies, Outcome: outcome, Err: errors.New("the registry is not ours")}),
			compare.New: side(engine.Step{Rule: changes, Outcome: engine.Unchanged}),
		}}
		described, err := report.DescribeCompared(output.Compared{Result: r, Difference: r.Difference()})
		if err != nil {
			t.Fatal(err)
		}
		if len(described.Findings) != 2 {
			t.Errorf("%s: %d findings", v, len(described.Findings))
		}
		for _, f := range described.Findings {
			if f.Verdict == report.Pass || !strings.Contains(f.Message, string(v)+": old: ") || !strings.Contains(f.Message, "the registry is not ours") {
				t.Errorf("%s: %s: %s: %q", v, f.Name, f.Verdict, f.Message)
			}
		}
	}
}

// writes are what a case of a run that writes is made of.
type writes struct {
	Problems []string
	Results  []struct {
		Before, After map[string]any
		Outcome       write.Outcome
		Method        request.Method
		Error         string
		StatusError   string
		Found         bool
		Rules         []engine.RuleRef
	}
}

func (w *writes) results() []write.Result {
	var out []write.Result
	for _, in := range w.Results {
		r := write.Result{Key: engine.KeyOf(object(in.Before)), Outcome: in.Outcome, Method: in.Method, Found: in.Found, Rules: in.Rules}
		if in.After != nil {
			r.Touched = diff.Between(object(in.Before), object(in.After), diff.Type{})
		}
		if in.Error != "" {
			r.Err = &write.ObjectError{Key: r.Key, Err: errors.New(in.Error)}
		}
		if in.StatusError != "" {
			r.Status = &write.Result{Key: r.Key, Outcome: write.Failed, Err: &write.ObjectError{Key: r.Key, Err: errors.New(in.StatusError)}}
		}
		out = append(out, r)
	}
	return out
}

// writeFormats are those of --report for a run that writes.
var writeFormats = map[string]func(output.Options) report.Report{
	"junit":    func(o output.Options) report.Report { return report.NewJUnit(o) },
	"github":   func(o output.Options) report.Report { return report.NewGitHub(o) },
	"markdown": func(o output.Options) report.Report { return report.NewMarkdownWrites(o, 0) },
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
	for outcome, want := range map[write.Outcome]report.Verdict{
		write.Applied: report.Pass, write.Planned: report.Pass, write.Unchanged: report.Pass,
		write.Failed: report.Error, write.Conflicted: report.Error, write.ServerKeepsValue: report.Error, write.NotTried: report.Error,
		write.Declined: report.Skip, write.Drifted: report.Skip, write.Managed: report.Skip,
		write.Deleted: report.Skip, write.Replaced: report.Skip, write.Terminating: report.Skip,
	} {
		r := write.Result{Outcome: outcome, Rules: []engine.RuleRef{rule("a"), rule("b")}}
		got := report.DescribeWritten(output.Written{Result: &r}).Findings
		if len(got) != 2 || got[0].Verdict != want || got[1].Outcome != string(outcome) || got[1].Rule != rule("b") {
			t.Errorf("%s: got %+v, want %s", outcome, got, want)
		}
	}
}

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
		out.TriggeredBy = &engine.ObjectKey{Name: s.Trigger}
		out.TriggeredBy.Kind = "Secret"
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
			c.Steps, c.Asked = append(c.Steps, s), append(c.Asked, s.Rule)
		}
		for _, f := range diff.Compare(in.Before, c.After.Object, diff.Type{}) {
			f.Writer = new(last)
			c.Fields = append(c.Fields, f)
		}
		out = append(out, c)
	}
	return out
}

// formats are those of --report, but for what they write into.
var formats = map[string]func(output.Options) output.Format{
	"junit":  func(o output.Options) output.Format { return report.New(o, report.NewJUnit(o)) },
	"sarif":  func(o output.Options) output.Format { return report.New(o, report.NewSARIF(o)) },
	"github": func(o output.Options) output.Format { return report.New(o, report.NewGitHub(o)) },
	"policyreport": func(o output.Options) output.Format {
		return report.New(o, report.NewPolicyReport(report.WGPolicyAPI(), o))
	},
	"openreports": func(o output.Options) output.Format {
		return report.New(o, report.NewPolicyReport(report.OpenReportsAPI(), o))
	},
	"markdown": func(o output.Options) output.Format { return report.NewMarkdown(o, 0) },
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
	summary := outputtest.Print(t, p, g.changes())
	for _, problem := range g.Problems {
		err := errors.New(problem.Text)
		if problem.Policy != "" {
			err = &engine.CompileError{Origin: problem.Origin, Policy: problem.Policy, Rule: problem.Rule, Err: err}
		}
		if err := p.Print(output.Problem{Err: err}); err != nil {
			t.Fatal(err)
		}
	}
	summary.Settle()
	if err := outputtest.End(p, *summary); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
