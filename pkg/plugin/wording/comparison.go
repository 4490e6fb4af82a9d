package wording

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
)

// Count is a number and what it counts.
type Count struct {
	N    int
	Text string
}

// Conclusion returns the result of a comparison as a sentence.
func Conclusion(s *compare.Summary) string {
	objects := counted(s.Objects, s.Variants.Compared)
	switch s.Conclusion {
	case compare.AllSame:
		return "SAME: both policy sets do the same to " + objects + ", and each rule was exercised."
	case compare.SameAsTested:
		return "SAME AS FAR AS TESTED: " + asFarAsTested(s)
	case compare.NotExercised:
		return "NOT EXERCISED: " + notExercised(s, objects)
	case compare.SomeDiffer:
		return "DIFFERENT: the two policy sets differ on " + differing(s) + "."
	case compare.Incomparable:
		return fmt.Sprintf("NOT COMPARABLE: the result of a side is unknown for %s of %s.", Number(s.Verdicts[compare.NotComparable]), objects)
	case compare.Nothing:
	}
	return "NOTHING COMPARED: there is no object that the policies match."
}

// differing says on how many objects and variants two sides differ.
func differing(s *compare.Summary) string {
	var parts []string
	if s.Objects > 0 {
		parts = append(parts, Number(s.Differing())+" of "+PluralNumber(s.Objects, "object"))
	}
	if s.Variants.Compared > 0 {
		parts = append(parts, Number(s.Variants.Differ)+" of "+PluralNumber(s.Variants.Compared, "variant"))
	}
	return strings.Join(parts, " and ")
}

// asFarAsTested says on what the sides are the same, and why that is not all.
func asFarAsTested(s *compare.Summary) string {
	known := counted(s.Objects, s.Variants.Compared-s.Variants.Unknown)
	text, but := "both policy sets do the same to "+known, ", but"
	if s.Variants.Unknown > 0 {
		text, but = text+"; it is unknown for "+PluralNumber(s.Variants.Unknown, "variant"), ", and"
	}
	if s.Unexercised() > 0 || s.Variants.Unknown == 0 {
		text += but + " not each derived rule was exercised"
	}
	return text + "."
}

// notExercised says for how many rules nothing is known.
func notExercised(s *compare.Summary, objects string) string {
	if !s.Exercised() {
		return "no rule changed any of " + objects + "."
	}
	idle := len(s.NotExercised(compare.Old)) + len(s.NotExercised(compare.New))
	return fmt.Sprintf("%s changed none of %s; otherwise both policy sets do the same to them.", Plural(idle, "rule"), objects)
}

// Verified describes the objects of a comparison that found no difference: "240 objects (87 changed, 153
// left alone by both) and 300 variants (120 changed)".
func Verified(s *compare.Summary) string {
	var out []string
	if s.Objects > 0 {
		text := fmt.Sprintf("%s (%s changed, %s left alone by both", PluralNumber(s.Objects, "object"),
			Number(s.Changed), Number(s.Objects-s.Changed))
		if s.Expanded > 0 {
			text += "; " + Number(s.Expanded) + " of them to be created"
		}
		if s.Failed > 0 {
			text += "; a rule fails on " + Number(s.Failed)
		}
		out = append(out, text+")")
	}
	if v := s.Variants; v.Compared > 0 {
		text := fmt.Sprintf("%s (%s changed", PluralNumber(v.Compared, "variant"), Number(v.Changed))
		if v.Unknown > 0 {
			text += fmt.Sprintf(", %s not comparable", Number(v.Unknown))
		}
		out = append(out, text+")")
	}
	return strings.Join(out, " and ")
}

func counted(objects, variants int) string {
	switch {
	case variants == 0:
		return PluralNumber(objects, "object")
	case objects == 0:
		return PluralNumber(variants, "variant")
	}
	return PluralNumber(objects, "object") + " and " + PluralNumber(variants, "variant")
}

// verdicts words each verdict, for one object and for several.
var verdicts = map[compare.Verdict]struct{ one, counted string }{ //nolint:gochecknoglobals // an immutable table
	compare.Same:           {"the same", "the same"},
	compare.Differs:        {"both change it, not alike in %s", "changed by both, not alike"},
	compare.OnlyOldChanges: {"only the old policies change it: %s", "changed by the old policies only"},
	compare.OnlyNewChanges: {"only the new policies change it: %s", "changed by the new policies only"},
	compare.OnlyOldDenies:  {"only the old policies deny it", "denied by the old policies only"},
	compare.OnlyNewDenies:  {"only the new policies deny it", "denied by the new policies only"},
	compare.NotComparable:  {"not comparable", "not comparable: the result of a side is unknown"},
}

// Verdict returns the verdict on one object, and the requests for which it holds if those are not all.
func Verdict(r *compare.Result) string {
	return strings.Replace(verdicts[r.Verdict].one, "%s", Plural(len(r.Fields), "field"), 1) + Requests(r)
}

// Requests returns the requests for which a verdict holds, if those are not all: ", on CREATE".
func Requests(r *compare.Result) string {
	if r.Everywhere {
		return ""
	}
	var names []string
	for _, operation := range r.Operations {
		names = append(names, string(operation))
	}
	return ", on " + strings.Join(names, " and ")
}

// Requested says what is special about the request for a variant, and which objects are missing: ",
// requested by alice, without ConfigMap shop/settings".
func Requested(v *compare.Variant) string {
	var out string
	if u := v.Request.User; !u.Empty() {
		out += ", requested by " + cmp.Or(u.Username, "a user")
		if len(u.Groups) > 0 {
			out += " of " + engine.Few(u.Groups)
		}
	}
	if v.Request.DryRun {
		out += ", in a dry run"
	}
	if len(v.Missing) > 0 {
		out += ", without " + engine.Few(v.Missing)
	}
	return out
}

// VerdictCounts returns the positive numbers of objects with each verdict, and of variants.
func VerdictCounts(s *compare.Summary) []Count {
	var out []Count
	count := func(n int, text string) {
		if n > 0 {
			out = append(out, Count{n, text})
		}
	}
	for _, v := range compare.Verdicts() {
		count(s.Verdicts[v], verdicts[v].counted)
	}
	count(s.Reordered, "of the same have their init containers in another order: these start one after the other")
	count(s.Failed, "of the same are as they are because a rule fails on them")
	if v := s.Variants; v.Compared+v.Refused > 0 {
		count(v.Compared, fmt.Sprintf("variants compared, of %s: the two policy sets differ on %s", Plural(v.Kinds, "kind"), Number(v.Differ)))
		count(v.Reordered, "of the variants that are the same have their init containers in another order")
		count(v.Untried, fmt.Sprintf("differences of one field were not tried: there are at most %s", PluralNumber(v.Limit, "variant")))
		count(v.Refused, "variants are left out: a server refuses the result of the old policies, and the new policies differ")
		count(v.Unknown, "of the variants are not comparable: the result of a side is unknown, or depends on a Secret (--show-secrets compares these)")
	}
	return out
}

// SideRule names the rule of a side that wrote a field: "old: kyverno team-labels/add".
func SideRule(s compare.Side, rules [2]engine.RuleRef) string {
	if rules[s] == (engine.RuleRef{}) {
		return s.String() + ": no rule changes it"
	}
	return s.String() + ": " + Rule(rules[s])
}
