package report

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// DescribeCompared returns what the comparison of an object found: a finding of each rule of the new
// side that acts on it, or of the old side where none of the new one does. A nil Masker shows everything.
func DescribeCompared(e output.Compared, m *redact.Masker) Object {
	d := describer{change: e.Difference, masker: m, places: map[engine.RuleRef]int{}}
	for _, side := range []compare.Side{compare.New, compare.Old} {
		for i := range e.Changes[side].Steps {
			s := &e.Changes[side].Steps[i]
			if s.Outcome != engine.NotMatched && (side == compare.New || s.Outcome.Incomplete()) {
				d.of(s.Rule)
			}
			if s.Outcome.Incomplete() && s.Err != nil {
				add(&d.findings[d.of(s.Rule)].Reasons, side.String()+": "+d.text(s.Err.Error()))
			}
		}
	}
	for i := range e.Difference.Fields {
		d.field(&e.Difference.Fields[i])
		rules := e.Fields[i].Rules
		at := d.of(e.Difference.Fields[i].Rule)
		if other := rules[compare.Old]; other != (engine.RuleRef{}) && other != e.Difference.Fields[i].Rule {
			add(&d.findings[at].Notes, "the old rule is "+d.text(wording.Rule(other)))
		}
	}
	for i := range d.findings {
		d.compared(&d.findings[i], e.Verdict)
	}
	out := newObject(e.Subject)
	out.Findings = d.findings
	return out
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
		f.Message = f.Outcome + ": " + f.differs()
	}
	if place := d.change.Target.Origin; place != "" && f.Verdict != Pass && !slices.Contains(f.Notes, place) {
		add(&f.Notes, "the object was read at "+d.text(place))
	}
}
