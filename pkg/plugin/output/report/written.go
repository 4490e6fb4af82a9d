package report

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// DescribeWritten returns the outcome of an object that was to be written as a finding
// of each of the rules that make the change.
func DescribeWritten(w output.Written) Object {
	came := Finding{Verdict: verdictOf(w), Outcome: string(w.Outcome), Message: escaped(w.Sentence())}
	if w.Err == nil && w.Status != nil && w.Status.Err != nil {
		came.Outcome = string(w.Status.Outcome)
	}
	if came.Verdict == Pass {
		add(&came.Notes, came.Message)
	}
	if w.Err == nil { // which says it all
		for _, n := range w.Notes() {
			add(&came.Warnings, escaped(n))
		}
	}
	came.written(w.Result)
	rules := w.Rules
	if len(rules) == 0 { // as of an object that a resumed run does not meet any more
		rules = []engine.RuleRef{{Dialect: "unknown", Policy: "policy"}}
	}
	out := newObject(w.Key)
	for _, rule := range rules {
		came.Rule = escapedRule(rule)
		came.Name, came.Place = wording.Rule(came.Rule), PlaceOf(rule.Origin)
		out.Findings = append(out.Findings, came)
	}
	return out
}

// verdictOf judges an outcome. An object that is left to its manager, or to a
// client that has changed or deleted it, is no error of the run.
func verdictOf(w output.Written) Verdict {
	if w.Status != nil && w.Status.Err != nil {
		return Error
	}
	switch w.Outcome {
	case apply.Applied, apply.Planned, apply.Unchanged:
		return Pass
	case apply.Declined, apply.Drifted, apply.Managed, apply.Deleted, apply.Replaced, apply.Terminating:
		return Skip
	case apply.Failed, apply.Conflicted, apply.ServerKeepsValue, apply.NotTried:
	}
	return Error
}

// written adds the fields that were written, or would be, to the object and to its
// /status.
func (f *Finding) written(r *apply.Result) {
	for _, part := range []*apply.Result{r, r.Status} {
		if part == nil || part.Outcome != apply.Applied && part.Outcome != apply.Planned {
			continue
		}
		c := part.Touched.Change(part.Key)
		f.Changed += len(c.Fields)
		for i := range min(len(c.Fields), fieldsHeld-len(f.Fields)) {
			f.Fields = append(f.Fields, FieldOf(&c.Fields[i]))
		}
	}
}
