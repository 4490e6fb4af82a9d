package wording_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// A conclusion counts as the same only what was found to be.
func TestConclusionOfWhatIsTheSame(t *testing.T) {
	idle := compare.Exercise{}
	busy := compare.Exercise{Outcomes: map[engine.Outcome]int{engine.Changed: 1}}
	for want, s := range map[string]compare.Summary{
		"SAME: both sides make the same of 2 objects, and each rule was exercised.":                                                   {Conclusion: compare.AllSame, Objects: 2, Rules: [2][]compare.Exercise{{busy}, {busy}}},
		"SAME AS FAR AS TESTED: both sides make the same of 2 objects and 5 variants; of 3 variants it is not known.":                 {Conclusion: compare.SameAsTested, Objects: 2, Variants: compare.VariantSummary{Compared: 8, Unknown: 3}, Rules: [2][]compare.Exercise{{busy}, {busy}}},
		"SAME AS FAR AS TESTED: both sides make the same of 1 object; of 1 variant it is not known, and not each rule was exercised.": {Conclusion: compare.SameAsTested, Objects: 1, Variants: compare.VariantSummary{Compared: 1, Unknown: 1}, Rules: [2][]compare.Exercise{{busy}, {idle}}},
		"SAME AS FAR AS TESTED: both sides make the same of 8 variants, but not each rule was exercised.":                             {Conclusion: compare.SameAsTested, Variants: compare.VariantSummary{Compared: 8}, Rules: [2][]compare.Exercise{{busy}, {idle}}},
		"SAME AS FAR AS TESTED: no rule changed any of 8 variants, which proves nothing.":                                             {Conclusion: compare.SameAsTested, Variants: compare.VariantSummary{Compared: 8, Unknown: 8}, Rules: [2][]compare.Exercise{{idle}, {idle}}},
	} {
		if got := wording.Conclusion(&s); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestRequested(t *testing.T) {
	for want, v := range map[string]compare.Variant{
		"":                                      {},
		", requested by alice":                  {Request: engine.Request{User: engine.UserInfo{Username: "alice"}}},
		", requested by alice of admins, users": {Request: engine.Request{User: engine.UserInfo{Username: "alice", Groups: []string{"admins", "users"}}}},
		", requested by a user of admins, in a dry run": {Request: engine.Request{User: engine.UserInfo{Groups: []string{"admins"}}, DryRun: true}},
		", without ConfigMap shop/a, ConfigMap shop/b":  {Missing: []string{"ConfigMap shop/a", "ConfigMap shop/b"}},
	} {
		if got := wording.Requested(&v); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
