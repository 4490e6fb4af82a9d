package report

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Verdict is what a rule's outcomes on an object come to, for readers who ask whether
// the object is as the policies want it.
type Verdict string

// The verdicts, named as policy reports name them. A run that writes has no Fail:
// what would change is changed, or there is an Error or a reason to Skip it.
const (
	Pass  Verdict = "pass"  // the rule finds nothing to change
	Fail  Verdict = "fail"  // the rule would change the object
	Error Verdict = "error" // the rule failed, was denied or is not supported; or its change was not made
	Skip  Verdict = "skip"  // the rule was skipped, or the object left alone
)

// The bounds of what a finding holds.
const (
	fieldsHeld  = 50 // with their values
	fieldsNamed = 3  // in a message
)

// Finding is the result of one rule on one object, however often the rule ran.
type Finding struct {
	Rule    engine.RuleRef // not masked
	Name    string         // the rule's, as wording.Rule writes it
	Place   Place          // of the policy
	Verdict Verdict
	// Outcome is the most telling engine.Outcome of the rule's steps; of a run that
	// writes, the apply.Outcome of the object.
	Outcome string
	// Message is the result in one line.
	Message string
	// Changed counts the fields that the rule wrote last, and Fields are the first of
	// them; of a run that writes, they are those of the object.
	Changed int
	Fields  []Field
	// Reasons say why the rule failed or was skipped, Notes what to know about what it
	// did, Warnings what else to know.
	Reasons, Notes, Warnings []string
	// Manifest are the lines of a variant that shows a difference, in a comparison.
	Manifest []string
}

// message is the Message of a rule that was evaluated.
func (f *Finding) message() string {
	switch f.Verdict {
	case Fail:
		return f.changes()
	case Error, Skip:
		if len(f.Reasons) > 0 {
			return f.Outcome + ": " + strings.Join(f.Reasons, "; ")
		}
		return f.Outcome
	case Pass:
		if len(f.Reasons) > 0 {
			return f.Outcome + ": " + strings.Join(f.Reasons, "; ")
		}
	}
	return "the rule finds nothing to change"
}

func (f *Finding) changes() string { return f.fields("would change") }

// differs is what the two sides of a comparison do not do alike, or why that is not known.
func (f *Finding) differs() string {
	if f.Changed == 0 {
		return strings.Join(f.Reasons, "; ")
	}
	return f.fields("not alike")
}

// fields counts the fields, and names the first.
func (f *Finding) fields(what string) string {
	var named []string
	for i := range min(len(f.Fields), fieldsNamed) {
		named = append(named, f.Fields[i].Path)
	}
	text := fmt.Sprintf("%s %s: %s", wording.Plural(f.Changed, "field"), what, strings.Join(named, ", "))
	if rest := f.Changed - len(named); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// Details returns lines beyond the message, without a line break at their end: each
// field with its values, notes and warnings. They are empty where there is no more
// to say.
func (f *Finding) Details() string {
	var lines []string
	for i := range f.Fields {
		lines = append(lines, f.Fields[i].String())
	}
	if rest := f.Changed - len(f.Fields); rest > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", wording.Plural(rest, "field")))
	}
	for _, n := range f.Notes {
		lines = append(lines, "note: "+n)
	}
	lines = append(lines, f.Manifest...)
	for _, w := range f.Warnings {
		lines = append(lines, "warning: "+w)
	}
	return strings.Join(lines, "\n")
}
