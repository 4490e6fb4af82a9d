package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// DescribeCompared returns what the comparison of an object found: a finding of each rule of the new
// side that acts on it, or of the old side where none of the new one does. The
// error is one of a variant that cannot be written.
func DescribeCompared(e output.Compared) (Object, error) {
	d := describer{change: e.Difference, places: map[engine.RuleRef]int{}}
	for _, side := range []compare.Side{compare.New, compare.Old} {
		for i := range e.Changes[side].Steps {
			s := &e.Changes[side].Steps[i]
			if s.Outcome != engine.NotMatched && (side == compare.New || s.Outcome.Incomplete()) {
				d.of(s.Rule)
			}
			if s.Outcome.Incomplete() && s.Err != nil {
				add(&d.findings[d.of(s.Rule)].Reasons, side.String()+": "+escaped(s.Err.Error()))
			}
		}
	}
	for i := range e.Difference.Fields {
		d.field(&e.Difference.Fields[i])
		rules := e.Fields[i].Rules
		at := d.of(e.Difference.Fields[i].Rule)
		if other := rules[compare.Old]; other != (engine.RuleRef{}) && other != e.Difference.Fields[i].Rule {
			add(&d.findings[at].Notes, "the old rule is "+escaped(wording.Rule(other)))
		}
	}
	for i := range d.findings {
		d.compared(&d.findings[i], e.Verdict)
	}
	out := newObject(e.Subject)
	out.Findings = d.findings
	if e.Variant == nil {
		return out, nil
	}
	out.Name += " (variant)"
	manifest, err := objectdiff.Manifests(e.Variant.Objects())
	if err != nil {
		return out, err
	}
	for i := range out.Findings {
		f := &out.Findings[i]
		if f.Verdict == Pass {
			continue
		}
		f.Notes = append(f.Notes, "shown by "+escaped(wording.PluralNumber(e.Variant.Count, "variant")+" ("+engine.Few(e.Variant.Kinds)+")")+"; the smallest object that shows it"+escaped(wording.Requested(e.Variant))+":")
		for line := range strings.Lines(manifest) {
			f.Manifest = append(f.Manifest, redact.EscapeLine(strings.TrimSuffix(line, "\n")))
		}
	}
	return out, nil
}

// reasons are those of all rules: what one does may make the object another for all.
func (d *describer) reasons() string {
	var all []string
	for i := range d.findings {
		for _, reason := range d.findings[i].Reasons {
			add(&all, reason)
		}
	}
	return strings.Join(all, "; ")
}

// DescribeExercise returns what a rule of a side was exercised on, as the one finding of the side.
func DescribeExercise(s compare.Side, e *compare.Exercise) Object {
	rule := escapedRule(e.Rule)
	f := Finding{Rule: rule, Name: wording.Rule(rule), Place: PlaceOf(e.Rule.Origin), Verdict: Pass, Outcome: "exercised", Message: "the rule was exercised"}
	if !e.Exercised() {
		f.Verdict, f.Outcome, f.Message = Skip, "not-exercised", "not exercised: missing is "+escaped(e.Missing)
	}
	counts := fmt.Sprintf("matched %d, held back on %d, changed %d", e.Matched(), e.Outcomes[engine.Skipped], e.Outcomes[engine.Changed])
	if e.Variants > 0 {
		counts += fmt.Sprintf(", and %s", wording.Plural(e.Variants, "variant"))
	}
	f.Notes = []string{counts}
	for _, reason := range e.Reasons() {
		f.Notes = append(f.Notes, fmt.Sprintf("held back on %d: %s", e.HeldBack[reason], escaped(reason)))
	}
	return Object{ID: s.String(), Name: "exercised (" + s.String() + ")", Findings: []Finding{f}}
}

// compared sums up what the comparison says of one rule.
func (d *describer) compared(f *Finding, v compare.Verdict) {
	f.Verdict, f.Outcome = Pass, string(compare.Same)
	switch {
	case v == compare.NotComparable:
		f.Verdict, f.Outcome = Error, string(v)
	case f.Changed > 0, v == compare.OnlyOldDenies, v == compare.OnlyNewDenies:
		f.Verdict, f.Outcome = Fail, string(v)
	}
	f.Message = "old and new policies make the same of the object"
	if f.Verdict != Pass {
		f.Message = f.Outcome + ": " + cmp.Or(f.differs(), d.reasons())
	}
	if place := d.change.Target.Origin; place != "" && f.Verdict != Pass && !slices.Contains(f.Notes, place) {
		add(&f.Notes, "the object was read at "+escaped(place))
	}
}
