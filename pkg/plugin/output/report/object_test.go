package report_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
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
				c.Fields = []engine.FieldChange{{Rule: rule("r"), Path: fieldpath.MakePathOrDie("a"), Kind: engine.Added, To: "b"}}
			}
			got := report.Describe(&c).Findings
			if len(got) != 1 || got[0].Verdict != tt.verdict || got[0].Outcome != string(tt.outcome) {
				t.Errorf("got %+v, want %s, %s", got, tt.verdict, tt.outcome)
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
			{Rule: rule("labels"), Path: path("metadata", "labels"), Kind: engine.Added},
			{Rule: rule("image"), Path: path("spec", "image"), Kind: engine.Added},
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
