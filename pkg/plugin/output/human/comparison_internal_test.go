package human

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestExercisesOfParameters(t *testing.T) {
	t.Parallel()
	team := engine.RuleRef{Dialect: "admissionpolicy", Policy: "team"}
	exercise := func(r engine.RuleRef, changed int) compare.Exercise {
		return compare.Exercise{Rule: r, Outcomes: map[engine.Outcome]int{engine.Changed: changed, engine.Skipped: 1, engine.NotMatched: 9}}
	}
	s := compare.Summary{Rules: [2][]compare.Exercise{
		{exercise(team.WithParameter("ConfigMap a/x"), 2), exercise(team.WithParameter("ConfigMap b/x"), 3)},
		{exercise(team.WithParameter("ConfigMap a/x"), 1)},
	}}
	want := [][]string{
		{"SIDE", "POLICY/RULE", "MATCHED", "HELD BACK", "CHANGED"},
		{"old", wording.Rule(team) + " (2 parameters)", "7", "2", "5"},
		{"new", wording.Rule(team.WithParameter("ConfigMap a/x")), "2", "1", "1"},
	}
	if diff := cmp.Diff(want, exercises(s, wording.Rule)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
