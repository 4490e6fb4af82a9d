package report

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Verdict is what a rule's outcomes on an object come to for who asks whether the
// object is as the policies want it.
type Verdict string

// The verdicts, named as policy reports name them.
const (
	Pass  Verdict = "pass"  // the object is as the rule wants it
	Fail  Verdict = "fail"  // the rule would change the object
	Error Verdict = "error" // the rule failed, was denied or is not supported
	Skip  Verdict = "skip"  // the rule was held back
)

// The bounds of what a finding tells.
const (
	fieldsHeld  = 50 // with their values
	fieldsNamed = 3  // in a message
)

// Finding is what came of one rule on one object, however often the rule ran.
type Finding struct {
	Rule    engine.RuleRef // as it is
	Name    string         // the rule's, as render.RuleText writes it
	Verdict Verdict
	// Outcome is that of the rule's steps which says the most.
	Outcome engine.Outcome
	// Changed counts the fields that the rule wrote last; Fields are the first of
	// them.
	Changed int
	Fields  []Field
	// Reasons say why the rule failed or was held back, Notes what to know about
	// what it did, Warnings what to know besides.
	Reasons, Notes, Warnings []string
}

// Message says in one line what came of the rule.
func (f *Finding) Message() string {
	switch f.Verdict {
	case Fail:
		return f.changes()
	case Error, Skip:
		if len(f.Reasons) > 0 {
			return string(f.Outcome) + ": " + strings.Join(f.Reasons, "; ")
		}
		return string(f.Outcome)
	case Pass:
	}
	return "the object is as the rule wants it"
}

func (f *Finding) changes() string {
	var named []string
	for i := range min(len(f.Fields), fieldsNamed) {
		named = append(named, f.Fields[i].Path)
	}
	text := fmt.Sprintf("%s would change: %s", plural(f.Changed, "field"), strings.Join(named, ", "))
	if rest := f.Changed - len(named); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// Details are lines beyond the message, without a line break at their end: each
// field with its values, notes and warnings. They are empty where there is no more
// to say.
func (f *Finding) Details() string {
	var lines []string
	for i := range f.Fields {
		lines = append(lines, f.Fields[i].String())
	}
	if rest := f.Changed - len(f.Fields); rest > 0 {
		lines = append(lines, fmt.Sprintf("and %s more", plural(rest, "field")))
	}
	for _, n := range f.Notes {
		lines = append(lines, "note: "+n)
	}
	for _, w := range f.Warnings {
		lines = append(lines, "warning: "+w)
	}
	return strings.Join(lines, "\n")
}

// plural is "1 field", "2 fields".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
