package structured

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// reportVariant is an object that is not there, and what is around it.
type reportVariant struct {
	Count   int              `json:"count"`
	Kinds   []string         `json:"kinds"`
	Object  map[string]any   `json:"manifest"`
	User    string           `json:"user,omitempty"`
	Groups  []string         `json:"groups,omitempty"`
	DryRun  bool             `json:"dryRun,omitempty"`
	Beside  []map[string]any `json:"beside,omitempty"`
	Missing []string         `json:"missing,omitempty"`
}

// reportTwoSided is a field that differs. A side that leaves the field out has no value.
type reportTwoSided struct {
	Path    string          `json:"path"`
	Kind    string          `json:"kind"`
	Old     any             `json:"old,omitempty"`
	New     any             `json:"new,omitempty"`
	OldRule *engine.RuleRef `json:"oldRule,omitempty"`
	NewRule *engine.RuleRef `json:"newRule,omitempty"`
}

type reportConclusion struct {
	Conclusion compare.Conclusion      `json:"conclusion"`
	Objects    int                     `json:"objects"`
	Changed    int                     `json:"changed"`
	Verdicts   map[compare.Verdict]int `json:"verdicts"`
	// Reordered and Failed count objects that are the same but for the order of init containers, or
	// because a rule fails on them.
	Reordered  int                `json:"reordered,omitempty"`
	Failed     int                `json:"failed,omitempty"`
	Variants   *reportVariants    `json:"variants,omitempty"`
	Operations []engine.Operation `json:"operations"`
	Old        []reportExercise   `json:"old"`
	New        []reportExercise   `json:"new"`
}

type reportVariants struct {
	Compared      int    `json:"compared"`
	Differ        int    `json:"differ"`
	NotComparable int    `json:"notComparable"`
	Refused       int    `json:"refused"`
	Kinds         int    `json:"kinds"`
	Limit         int    `json:"limit"`
	Untried       int    `json:"untried"`
	Seed          uint64 `json:"seed"`
}

type reportExercise struct {
	engine.RuleRef
	Matched   int            `json:"matched"`
	Changed   int            `json:"changed"`
	HeldBack  int            `json:"heldBack"`
	Variants  int            `json:"variantsChanged,omitempty"`
	Reasons   []reportReason `json:"reasons,omitempty"`
	Exercised bool           `json:"exercised"`
	Missing   string         `json:"missing,omitempty"`
}

type reportReason struct {
	Reason  string `json:"reason"`
	Objects int    `json:"objects"`
}

// differenceOf is an object that does not come out the same as the report holds it.
func differenceOf(e output.Compared) members {
	out := members{{"object", e.Subject}}.with("origin", e.Target.Origin)
	out = append(out, member{"verdict", e.Verdict}, member{"operations", e.Operations})
	if v := e.Variant; v != nil {
		variant := &reportVariant{
			Count: v.Count, Kinds: v.Kinds, Object: v.Object.Object,
			User: v.Request.User.Username, Groups: v.Request.User.Groups, DryRun: v.Request.DryRun, Missing: v.Missing,
		}
		for _, u := range v.Beside {
			variant.Beside = append(variant.Beside, u.Object)
		}
		out = append(out, member{"variant", variant})
	}
	var fields []reportTwoSided
	for i := range e.Fields {
		f := &e.Fields[i]
		fields = append(fields, reportTwoSided{
			Path: engine.PathString(f.Path), Kind: string(f.Kind), Old: f.From, New: f.To,
			OldRule: ruleOf(f.Rules[compare.Old]), NewRule: ruleOf(f.Rules[compare.New]),
		})
	}
	if len(fields) > 0 {
		out = append(out, member{"fields", fields})
	}
	for _, side := range compare.Sides() {
		var troubles []engine.Step // the rules that failed, denied or are not supported
		for i := range e.Changes[side].Steps {
			if s := &e.Changes[side].Steps[i]; s.Outcome.Incomplete() {
				troubles = append(troubles, *s)
			}
		}
		if len(troubles) > 0 {
			out = append(out, member{side.String(), troubles})
		}
	}
	return out
}

func ruleOf(r engine.RuleRef) *engine.RuleRef {
	if r == (engine.RuleRef{}) {
		return nil
	}
	return &r
}

func conclusionOf(s compare.Summary) reportConclusion {
	out := reportConclusion{
		Conclusion: s.Conclusion, Objects: s.Objects, Changed: s.Changed, Verdicts: s.Verdicts, Operations: s.Operations,
		Reordered: s.Reordered, Failed: s.Failed,
		Old: exercisesOf(s.Rules[compare.Old]), New: exercisesOf(s.Rules[compare.New]),
	}
	if v := s.Variants; v.Compared > 0 {
		out.Variants = &reportVariants{v.Compared, v.Differ, v.Unknown, v.Refused, v.Kinds, v.Limit, v.Untried, v.Seed}
	}
	return out
}

func exercisesOf(rules []compare.Exercise) []reportExercise {
	out := []reportExercise{}
	for i := range rules {
		e := &rules[i]
		one := reportExercise{
			RuleRef: e.Rule, Matched: e.Matched(), Changed: e.Outcomes[engine.Changed], HeldBack: e.Outcomes[engine.Skipped],
			Variants: e.Variants, Exercised: e.Exercised(), Missing: e.Missing,
		}
		for _, reason := range e.Reasons() {
			one.Reasons = append(one.Reasons, reportReason{reason, e.HeldBack[reason]})
		}
		out = append(out, one)
	}
	return out
}
