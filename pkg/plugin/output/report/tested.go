package report

import (
	"cmp"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// DescribeTested returns a result of a test as a finding on its object, at the place of the result: the
// policy of the finding is the file of the test.
func DescribeTested(t output.Tested) Object {
	f := Finding{
		Rule: engine.RuleRef{
			Dialect: "test", Policy: PlaceOf(t.Origin).Path, Rule: wording.Rule(t.Rule),
			Origin: t.Origin,
		},
		Place:   PlaceOf(t.Rule.Origin),
		Outcome: strings.ReplaceAll(string(t.Verdict), " ", "-"),
		Message: escaped(cmp.Or(t.Text, "wanted "+t.Wanted)),
	}
	if t.Reason != "" {
		f.Message += ", because " + escaped(t.Reason)
	}
	switch t.Verdict {
	case output.TestPassed:
		f.Verdict = Pass
	case output.TestFailed:
		f.Verdict = Fail
	case output.NotRun:
		f.Verdict = Error
	case output.NotTested:
		f.Verdict = Skip
	}
	lines, places := t.Fields()
	for i := range lines {
		f.Lines = append(f.Lines, escaped(places[i]+": "+lines[i]))
	}
	if t.Note != "" {
		add(&f.Notes, escaped(t.Note))
	}
	f.Rule = escapedRule(f.Rule)
	f.Name = f.Rule.Rule
	out := Object{Name: "all objects"}
	if t.Object != (engine.ObjectKey{}) {
		out = newObject(t.Object)
	}
	out.Place, out.Findings = PlaceOf(t.Origin), []Finding{f}
	return out
}
