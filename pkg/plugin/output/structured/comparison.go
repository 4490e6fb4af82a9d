package structured

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Comparison prints one report object: the objects that do not come out the same, and what was
// exercised.
type Comparison struct {
	encoder
	*document
}

// NewComparison returns a printer of the report of a comparison, or of what the query of the
// options finds in it. It fails for a query that is none.
func NewComparison(o output.Options, asYAML bool) (*Comparison, error) {
	d, err := queried(o, asYAML, Head{Kind: "ComparisonReport", List: "differences", Context: o.Context})
	return &Comparison{encoder{o}, d}, err
}

type reportDifference struct {
	Object     engine.ObjectKey   `json:"object"`
	Origin     string             `json:"origin,omitempty"`
	Verdict    compare.Verdict    `json:"verdict"`
	Operations []engine.Operation `json:"operations"`
	Variant    *reportVariant     `json:"variant,omitempty"`
	Fields     []reportTwoSided   `json:"fields,omitempty"`
	Old        []engine.Step      `json:"old,omitempty"` // the rules that failed, denied or are not supported
	New        []engine.Step      `json:"new,omitempty"`
}

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

// Print adds an object that does not come out the same, or what went wrong beside the objects. The
// end of the comparison ends the report.
func (p *Comparison) Print(e output.Event) error {
	switch e := e.(type) {
	case output.Fleet:
		p.report.head.Clusters = p.clusters(e)
	case output.Compared:
		if e.Verdict == compare.Same {
			return nil
		}
		if err := p.report.Add(p.difference(e)); err != nil {
			return fmt.Errorf("%s: writing the report: %w", e.Subject, err)
		}
	case output.Problem:
		p.report.Problem(e.Err.Error())
	case output.Comparison:
		return p.end(p.conclusion(e.Summary))
	}
	return nil
}

func (p *Comparison) difference(e output.Compared) reportDifference {
	out := reportDifference{Object: e.Subject, Origin: e.Target.Origin, Verdict: e.Verdict, Operations: e.Operations}
	for i := range e.Fields {
		f := &e.Fields[i]
		from, to := redact.Values(p.Masker, e.Difference, &f.FieldChange)
		out.Fields = append(out.Fields, reportTwoSided{
			Path: engine.PathString(f.Path), Kind: string(f.Kind), Old: from, New: to,
			OldRule: ruleOf(f.Rules[compare.Old]), NewRule: ruleOf(f.Rules[compare.New]),
		})
	}
	if v := e.Variant; v != nil {
		out.Variant = &reportVariant{
			Count: v.Count, Kinds: v.Kinds, Object: p.Masker.Object(v.Object).Object,
			User: v.Request.User.Username, Groups: v.Request.User.Groups, DryRun: v.Request.DryRun, Missing: v.Missing,
		}
		for _, u := range v.Beside {
			out.Variant.Beside = append(out.Variant.Beside, p.Masker.Object(u).Object)
		}
	}
	out.Old, out.New = p.troubles(e.Changes[compare.Old]), p.troubles(e.Changes[compare.New])
	return out
}

func ruleOf(r engine.RuleRef) *engine.RuleRef {
	if r == (engine.RuleRef{}) {
		return nil
	}
	return &r
}

func (p *Comparison) troubles(c *engine.Change) []engine.Step {
	var out []engine.Step
	for i := range c.Steps {
		if c.Steps[i].Outcome.Incomplete() {
			out = append(out, redact.Step(&c.Steps[i]))
		}
	}
	return out
}

func (p *Comparison) conclusion(s compare.Summary) reportConclusion {
	out := reportConclusion{
		Conclusion: s.Conclusion, Objects: s.Objects, Changed: s.Changed, Verdicts: s.Verdicts, Operations: s.Operations,
		Reordered: s.Reordered, Failed: s.Failed,
		Old: p.exercises(s.Rules[compare.Old]), New: p.exercises(s.Rules[compare.New]),
	}
	if v := s.Variants; v.Compared > 0 {
		out.Variants = &reportVariants{v.Compared, v.Differ, v.Unknown, v.Refused, v.Kinds, v.Limit, v.Untried, v.Seed}
	}
	return out
}

func (p *Comparison) exercises(rules []compare.Exercise) []reportExercise {
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

// Close has nothing to add to the summary.
func (p *Comparison) Close() error { return nil }
