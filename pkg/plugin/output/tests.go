package output

import (
	"encoding/json"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// TestVerdict is what came of one thing that a test wants.
type TestVerdict string

// The verdicts. NotTested is what a test says of a rule that does not mutate, or of an object that it does
// not describe; NotRun is what could not be evaluated.
const (
	TestPassed TestVerdict = "passed"
	TestFailed TestVerdict = "failed"
	NotTested  TestVerdict = "not tested"
	NotRun     TestVerdict = "not run"
)

// Tested is what a result of a test wants of a rule on an object, and what came of it.
type Tested struct {
	Test, Origin string // the name of the test; FILE:LINE of the result
	Rule         engine.RuleRef
	Object       engine.ObjectKey // zero where it is about no single one
	Verdict      TestVerdict
	Wanted, Got  string // Kyverno's words for what a rule does: pass, skip, error
	Text         string // says the verdict; empty for one that passed
	Reason       string // why the rule did not act; empty if it did
	Note         string // what to know in addition to the verdict
	Foreign      bool   // the rule does not mutate
	// Difference is the change from the wanted object to the one that came out; nil if there is none. Places are
	// those of the wanted object, and of each of its Fields there.
	Difference *engine.Change
	Places     []string
}

// Title names what was tested.
func (t *Tested) Title() string {
	if t.Object == (engine.ObjectKey{}) {
		return wording.Rule(t.Rule)
	}
	return wording.Rule(t.Rule) + " on " + t.Object.String()
}

// toShow returns the result without what Secrets hold.
func (t Tested) toShow() Tested {
	if t.Difference != nil {
		t.Difference = redact.Change(t.Difference)
	}
	return t
}

// Tests ends a run of tests with its counts.
type Tests struct {
	Tests    int
	Results  map[TestVerdict]int
	Problems int // errors of tests that could not be run
}

// valueLength bounds a value in Fields, in bytes.
const valueLength = 400

// Fields returns a line for each field that is not as wanted: "spec.replicas: wanted 2, got 3", and where it
// is wanted.
func (t *Tested) Fields() (lines, places []string) {
	if t.Difference == nil {
		return nil, nil
	}
	for i := range t.Difference.Fields {
		f := &t.Difference.Fields[i]
		text := engine.PathString(f.Path) + ": "
		switch f.Kind {
		case engine.Added:
			text += "not wanted, got " + valueText(f.To)
		case engine.Removed:
			text += "wanted " + valueText(f.From) + ", which is not there"
		case engine.Moved:
			text += fmt.Sprintf("wanted at place %v, got at place %v", f.From, f.To)
		case engine.Replaced:
			text += "wanted " + valueText(f.From) + ", got " + valueText(f.To)
		}
		place := ""
		if i+1 < len(t.Places) {
			place = t.Places[i+1]
		}
		lines, places = append(lines, text), append(places, place)
	}
	return lines, places
}

func valueText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("(no JSON value: %T)", v)
	}
	return engine.Shorten(string(text), valueLength)
}
