package compare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
)

// The summaries of comparisons on several sets of objects are that of one comparison on all of them.
func TestJoin(t *testing.T) {
	rule, other := engine.RuleRef{Policy: "p", Rule: "r"}, engine.RuleRef{Policy: "p", Rule: "s"}
	one := compare.Summary{
		Counts: compare.Counts{Objects: 2, Changed: 1, Verdicts: map[compare.Verdict]int{compare.Same: 2}}, Operations: []engine.Operation{engine.OperationUpdate},
		Rules: [2][]compare.Exercise{{{Rule: rule, Outcomes: map[engine.Outcome]int{engine.NotMatched: 2}, Missing: "an object that it matches"}}},
	}
	two := compare.Summary{
		Counts:   compare.Counts{Objects: 3, Changed: 2, Verdicts: map[compare.Verdict]int{compare.Same: 1, compare.Differs: 2}},
		Problems: 1, Operations: []engine.Operation{engine.OperationUpdate, engine.OperationCreate},
		Rules: [2][]compare.Exercise{{
			{Rule: rule, Outcomes: map[engine.Outcome]int{engine.Skipped: 3}, HeldBack: map[string]int{"why": 3}, Missing: "an object that no condition holds it back from"},
			{Rule: other, Outcomes: map[engine.Outcome]int{engine.Changed: 2}},
		}},
	}
	var all compare.Summary
	for _, s := range []*compare.Summary{&one, &two, &one} {
		all.Join(s)
	}
	want := compare.Summary{
		Conclusion: compare.SomeDiffer, Problems: 1,
		Counts:     compare.Counts{Objects: 7, Changed: 4, Verdicts: map[compare.Verdict]int{compare.Same: 5, compare.Differs: 2}},
		Operations: two.Operations,
		Rules: [2][]compare.Exercise{{
			{Rule: rule, Outcomes: map[engine.Outcome]int{engine.NotMatched: 4, engine.Skipped: 3}, HeldBack: map[string]int{"why": 3}, Missing: "an object that no condition holds it back from"},
			{Rule: other, Outcomes: map[engine.Outcome]int{engine.Changed: 2}, HeldBack: map[string]int{}},
		}},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if one.Verdicts[compare.Same] != 2 || one.Rules[0][0].Outcomes[engine.NotMatched] != 2 {
		t.Error("a summary that was added is modified")
	}
}

// Variants that are not comparable leave open whether the sides do the same.
func TestUnknownVariantsLeaveItOpen(t *testing.T) {
	changed := []compare.Exercise{{Outcomes: map[engine.Outcome]int{engine.Changed: 1}}}
	for unknown, want := range []compare.Conclusion{compare.AllSame, compare.SameAsTested} {
		s := compare.Summary{Counts: compare.Counts{Objects: 1}, Rules: [2][]compare.Exercise{changed, changed}}
		s.Join(&compare.Summary{Variants: compare.VariantSummary{Compared: 2, Unknown: unknown}})
		if s.Conclusion != want {
			t.Errorf("%d unknown variants: %s, want %s", unknown, s.Conclusion, want)
		}
	}
}
