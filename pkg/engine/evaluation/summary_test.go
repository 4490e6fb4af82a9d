package evaluation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

func TestSummaryCountsAnObjectOncePerOutcome(t *testing.T) {
	asked := engine.RuleRef{Policy: "share", Rule: "log-level"}
	other := engine.RuleRef{Policy: "share", Rule: "credentials"}
	tests := map[string]struct {
		steps      []engine.Outcome
		notMatched []engine.RuleRef
		want       map[engine.Outcome]int
	}{
		"changed as a target, not matched as a trigger": {
			steps: []engine.Outcome{engine.Changed}, notMatched: []engine.RuleRef{asked},
			want: map[engine.Outcome]int{engine.Changed: 1},
		},
		"the same for those who ask why": {
			steps: []engine.Outcome{engine.NotMatched, engine.Changed},
			want:  map[engine.Outcome]int{engine.Changed: 1},
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
			notMatched: []engine.RuleRef{asked, other},
			want:       map[engine.Outcome]int{engine.NotMatched: 1},
		},
		"met by another rule alone": {
			notMatched: []engine.RuleRef{other},
			want:       map[engine.Outcome]int{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := &engine.Change{NotMatched: test.notMatched}
			for _, o := range test.steps {
				c.Steps = append(c.Steps, engine.Step{Rule: asked, Outcome: o})
			}
			s := evaluation.NewSummary([]engine.RuleRef{asked})
			s.Add(c)
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
	s.Add(&engine.Change{NotMatched: []engine.RuleRef{open}})
	s.Add(&engine.Change{Steps: []engine.Step{{Rule: gold, Outcome: engine.Changed}, {Rule: silver, Outcome: engine.Unchanged}}})
	s.Add(&engine.Change{NotMatched: []engine.RuleRef{open}})
	want := []evaluation.RuleSummary{
		{Rule: gold, Outcomes: map[engine.Outcome]int{engine.Changed: 1, engine.NotMatched: 2}},
		{Rule: silver, Outcomes: map[engine.Outcome]int{engine.Unchanged: 1}},
	}
	if d := cmp.Diff(want, s.Rules); d != "" {
		t.Error(d)
	}
}

func TestSummaryOfUnknownRules(t *testing.T) {
	known, late, later := engine.RuleRef{Policy: "known"}, engine.RuleRef{Policy: "late"}, engine.RuleRef{Policy: "later"}
	s := evaluation.NewSummary([]engine.RuleRef{known})
	s.Add(&engine.Change{Steps: []engine.Step{{Rule: late, Outcome: engine.Failed}, {Rule: later, Outcome: engine.Denied}}})
	want := []evaluation.RuleSummary{
		{Rule: known, Outcomes: map[engine.Outcome]int{}},
		{Rule: late, Outcomes: map[engine.Outcome]int{engine.Failed: 1}},
		{Rule: later, Outcomes: map[engine.Outcome]int{engine.Denied: 1}},
	}
	if d := cmp.Diff(want, s.Rules); d != "" {
		t.Error(d)
	}
}
