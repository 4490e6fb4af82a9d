package evaluation_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

func TestSummaryCountsAnObjectOncePerOutcome(t *testing.T) {
	asked := engine.RuleRef{Policy: "share", Rule: "log-level"}
	other := engine.RuleRef{Policy: "share", Rule: "credentials"}
	tests := map[string]struct {
		steps []engine.Outcome
		asked []engine.RuleRef
		want  map[engine.Outcome]int
	}{
		"changed as a target, not matched as a trigger": {
			steps: []engine.Outcome{engine.Changed}, asked: []engine.RuleRef{asked},
			want: map[engine.Outcome]int{engine.Changed: 1},
		},
		"the same for those who ask why": {
			steps: []engine.Outcome{engine.NotMatched, engine.Changed}, asked: []engine.RuleRef{asked},
			want: map[engine.Outcome]int{engine.Changed: 1},
		},
		"changed by two triggers": {
			steps: []engine.Outcome{engine.Changed, engine.Changed},
			want:  map[engine.Outcome]int{engine.Changed: 1},
		},
		"as the second trigger wants it, once the first has changed it": {
			steps: []engine.Outcome{engine.Changed, engine.Unchanged},
			want:  map[engine.Outcome]int{engine.Changed: 1},
		},
		"held back for one trigger, as the other wants it": {
			steps: []engine.Outcome{engine.Skipped, engine.Unchanged, engine.NotMatched},
			want:  map[engine.Outcome]int{engine.Unchanged: 1},
		},
		"a failure for one trigger is not hidden by the change of another": {
			steps: []engine.Outcome{engine.Changed, engine.Failed, engine.Skipped},
			want:  map[engine.Outcome]int{engine.Changed: 1, engine.Failed: 1},
		},
		"not matched at all": {
			asked: []engine.RuleRef{asked, other},
			want:  map[engine.Outcome]int{engine.NotMatched: 1},
		},
		"met by another rule alone": {
			asked: []engine.RuleRef{other},
			want:  map[engine.Outcome]int{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &engine.Change{Asked: test.asked}
			for _, o := range test.steps {
				c.Steps = append(c.Steps, engine.Step{Rule: asked, Outcome: o})
			}
			s := evaluation.NewSummary([]engine.RuleRef{asked})
			s.Add(c)
			s.Settle()
			if d := cmp.Diff(test.want, s.Rules[0].Outcomes); d != "" {
				t.Error(d)
			}
		})
	}
}

// A policy with parameters is known by its binding, and its steps by the parameters too.
func TestSummaryOfParameters(t *testing.T) {
	open := engine.RuleRef{Policy: "tier", Via: "all"}
	gold, silver := open.WithParameter("Tier shop/gold"), open.WithParameter("Tier shop/silver")
	s := evaluation.NewSummary([]engine.RuleRef{open})
	asked := []engine.RuleRef{open}
	s.Add(&engine.Change{Asked: asked})
	s.Add(&engine.Change{Asked: asked, Steps: []engine.Step{{Rule: gold, Outcome: engine.Changed}, {Rule: silver, Outcome: engine.Unchanged}}})
	s.Add(&engine.Change{Asked: asked})
	s.Add(&engine.Change{Asked: asked, Steps: []engine.Step{{Rule: gold, Outcome: engine.Changed}, {Rule: silver, Outcome: engine.Changed}}})
	s.Settle()
	want := []evaluation.RuleSummary{
		{Rule: gold, Outcomes: map[engine.Outcome]int{engine.Changed: 2, engine.NotMatched: 2}},
		{Rule: silver, Outcomes: map[engine.Outcome]int{engine.Unchanged: 1, engine.Changed: 1}},
	}
	unexported := cmpopts.IgnoreUnexported(evaluation.RuleSummary{})
	if d := cmp.Diff(want, s.Rules, unexported); d != "" {
		t.Error(d)
	}
	joined := evaluation.NewSummary(nil)
	joined.Join(s)
	recounted := s.Recounted(slices.Values([]*engine.Change{{Asked: asked, Steps: []engine.Step{{Rule: silver, Outcome: engine.Changed}}}}))
	for name, test := range map[string]struct {
		rules   []evaluation.RuleSummary
		changed int
	}{"counted": {s.Rules, 2}, "joined": {joined.Rules, 2}, "recounted": {recounted.Rules, 1}} {
		merged := []evaluation.RuleSummary{{Rule: open, Parameters: 2, Outcomes: map[engine.Outcome]int{
			engine.Changed: test.changed, engine.Unchanged: 1, engine.NotMatched: 2,
		}}}
		if d := cmp.Diff(merged, evaluation.MergeParameters(test.rules), unexported); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Joined summaries count what one of all their objects would count: no field is forgotten.
func TestJoinCountsEverything(t *testing.T) {
	whole := evaluation.NewSummary(nil)
	rule := engine.RuleRef{Policy: "share", Rule: "log-level"}
	var parts [2]*evaluation.Summary
	for i := range parts {
		parts[i] = evaluation.NewSummary(nil)
		c := &engine.Change{
			Before: &unstructured.Unstructured{}, After: &unstructured.Unstructured{},
			Fields: []engine.FieldChange{
				{Path: fieldpath.MakePathOrDie("spec", "replicas"), Kind: engine.Added, To: int64(1), Writer: &rule},
				{Path: fieldpath.MakePathOrDie("metadata", "annotations", engine.AppliedPatches), Kind: engine.Added, To: "x", Writer: &rule},
			},
			Steps:   []engine.Step{{Rule: rule, Outcome: engine.Changed}, {Rule: rule, Outcome: engine.Failed}, {Rule: rule, Outcome: engine.Skipped, Err: &engine.IgnoredError{}}},
			Created: &engine.Change{Fields: []engine.FieldChange{{Path: fieldpath.MakePathOrDie("spec"), Writer: &rule}}, Steps: []engine.Step{{Rule: rule, Outcome: engine.Changed, AsCreated: true}}},
			Impacts: []engine.Impact{{Code: engine.ImpactRollout, Pods: 3}, {Code: engine.ImpactRefused}, {Code: engine.ImpactApplied, Owner: "Flux", Source: "deploy"}},
		}
		for _, s := range []*evaluation.Summary{whole, parts[i]} {
			s.Add(c)
			s.Add(&engine.Change{Subject: engine.ObjectKey{Of: engine.Maker{Name: "web"}}, Fields: c.Fields[:1], Steps: c.Steps[:1]})
			s.Outdated = []string{"configmaps"}
			s.Overlay = map[string]int{"ConfigMap": 2} // of files, which all of them read
			if s.Canary == nil {
				s.Canary = &evaluation.Canary{Percent: 10, MaxObjects: 5, More: true}
			}
			s.Canary.LeftOut++
		}
	}
	for field, value := range reflect.ValueOf(*whole).Fields() {
		if field.IsExported() && value.IsZero() {
			t.Errorf("the test does not set %s", field.Name)
		}
	}
	joined := evaluation.NewSummary(nil)
	joined.Join(parts[0])
	joined.Join(parts[1])
	if diff := cmp.Diff(whole, joined, cmpopts.IgnoreUnexported(evaluation.Summary{}, evaluation.RuleSummary{})); diff != "" {
		t.Error(diff)
	}
}
