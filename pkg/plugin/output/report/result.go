package report

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Results is a report of a run that writes.
type Results interface {
	Troubled
	// Add takes what came of one object.
	Add(Object) error
	// Write writes the report. Nothing may be added after it.
	Write() error
}

// OfResult says what came of an object that was to be written, for each of the
// rules that make the change. A nil Masker shows everything.
func OfResult(r *apply.Result, m *redact.Masker) Object {
	m.Learn(r.Before)
	m.Learn(r.After)
	text := func(s string) string { return redact.EscapeLine(m.Text(s)) }
	came := Finding{Verdict: verdictOf(r), Outcome: string(r.Outcome), Message: text(human.ResultSentence(r))}
	if r.Err == nil && r.Status != nil && r.Status.Err != nil {
		came.Outcome = string(r.Status.Outcome)
	}
	if came.Verdict == Pass {
		add(&came.Notes, came.Message)
	}
	if r.Err == nil { // which says it all
		for _, n := range human.ResultNotes(r) {
			add(&came.Warnings, text(n))
		}
	}
	came.written(r, m)
	rules := r.Rules
	if len(rules) == 0 { // as of an object that a resumed run does not meet any more
		rules = []engine.RuleRef{{Dialect: "unknown", Policy: "policy"}}
	}
	out := Object{Key: r.Key, Name: NameOf(r.Key), Findings: make([]Finding, len(rules))}
	for i, rule := range rules {
		came.Rule, came.Name = rule, wording.Rule(rule)
		out.Findings[i] = came
	}
	return out
}

// verdictOf judges an outcome. To leave an object to whoever manages it, or to
// whoever has changed or deleted it, is not an Error of the run.
func verdictOf(r *apply.Result) Verdict {
	if r.Status != nil && r.Status.Err != nil {
		return Error
	}
	switch r.Outcome {
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
func (f *Finding) written(r *apply.Result, m *redact.Masker) {
	for _, part := range []*apply.Result{r, r.Status} {
		if part == nil || part.Outcome != apply.Applied && part.Outcome != apply.Planned {
			continue
		}
		c := part.Touched.Change(part.Key)
		f.Changed += len(c.Fields)
		for i := range min(len(c.Fields), fieldsHeld-len(f.Fields)) {
			f.Fields = append(f.Fields, fieldOf(&c, &c.Fields[i], m))
		}
	}
}
