package structured

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// differenceOf is an object that does not come out the same as the report holds it.
func differenceOf(e output.Compared) Object {
	var fields []any
	for i := range e.Fields { // a side that leaves the field out has no value
		f := &e.Fields[i]
		fields = append(fields, Object{{"path", engine.PathString(f.Path)}, {"kind", string(f.Kind)}}.
			addIf(f.From != nil, "old", f.From).addIf(f.To != nil, "new", f.To).
			ruleIf("oldRule", f.Rules[compare.Old]).ruleIf("newRule", f.Rules[compare.New]))
	}
	out := Object{{"object", e.Subject}}.With("origin", e.Target.Origin).Add("verdict", e.Verdict).Add("operations", e.Operations)
	if e.Variant != nil {
		out = out.Add("variant", variantOf(e.Variant))
	}
	out = out.addIf(len(fields) > 0, "fields", fields)
	for _, side := range compare.Sides() {
		var troubles []any // the rules that failed, denied or are not supported
		for i := range e.Changes[side].Steps {
			if s := &e.Changes[side].Steps[i]; s.Outcome.Incomplete() {
				troubles = append(troubles, stepMembers(s))
			}
		}
		out = out.addIf(len(troubles) > 0, side.String(), troubles)
	}
	return out
}

// variantOf is an object that is not there, and what is around it.
func variantOf(v *compare.Variant) Object {
	var beside []any
	for _, u := range v.Beside {
		beside = append(beside, u.Object)
	}
	user := v.Request.User
	return Object{{"count", v.Count}, {"kinds", v.Kinds}, {"manifest", v.Object.Object}}.With("user", user.Username).
		addIf(len(user.Groups) > 0, "groups", user.Groups).addIf(v.Request.DryRun, "dryRun", true).
		addIf(len(beside) > 0, "beside", beside).addIf(len(v.Missing) > 0, "missing", v.Missing)
}

// ruleIf appends a rule, unless it is none.
func (m Object) ruleIf(name string, r engine.RuleRef) Object {
	return m.addIf(r != engine.RuleRef{}, name, r)
}

// conclusionOf is the summary of a comparison. Objects are the same but for the order of init containers, or because a rule fails
// on them, where it says so.
func conclusionOf(s compare.Summary) Object {
	v := s.Variants
	variants := Object{
		{"compared", v.Compared},
		{"differ", v.Differ},
		{"notComparable", v.Unknown},
		{"refused", v.Refused},
		{"kinds", v.Kinds},
		{"limit", v.Limit},
		{"untried", v.Untried},
		{"seed", v.Seed},
	}
	return Object{{"conclusion", s.Conclusion}, {"objects", s.Objects}, {"changed", s.Changed}, {"verdicts", s.Verdicts}}.
		addIf(s.Reordered > 0, "reordered", s.Reordered).addIf(s.Failed > 0, "failed", s.Failed).addIf(v.Compared > 0, "variants", variants).
		Add("operations", s.Operations).Add("old", exercisesOf(s.Rules[compare.Old])).Add("new", exercisesOf(s.Rules[compare.New]))
}

func exercisesOf(rules []compare.Exercise) []any {
	out := []any{}
	for i := range rules {
		e := &rules[i]
		var reasons []any
		for _, reason := range e.Reasons() {
			reasons = append(reasons, Object{{"reason", reason}, {"objects", e.HeldBack[reason]}})
		}
		out = append(out, Object{}.rule(e.Rule).Add("matched", e.Matched()).Add("changed", e.Outcomes[engine.Changed]).
			Add("heldBack", e.Outcomes[engine.Skipped]).addIf(e.Variants > 0, "variantsChanged", e.Variants).
			addIf(len(reasons) > 0, "reasons", reasons).Add("exercised", e.Exercised()).With("missing", e.Missing))
	}
	return out
}
