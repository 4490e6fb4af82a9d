package output

import (
	"encoding/json"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// TestVerdict is the result of one expectation of a test.
type TestVerdict string

// The verdicts. NotTested is for a rule that does not mutate, or an object without a description; NotRun for
// what could not be evaluated.
const (
	TestPassed TestVerdict = "passed"
	TestFailed TestVerdict = "failed"
	NotTested  TestVerdict = "not tested"
	NotRun     TestVerdict = "not run"
)

// Tested is a test's expectation of a rule on an object, with its result.
type Tested struct {
	Test, Origin string // the name of the test; FILE:LINE of the result
	Rule         engine.RuleRef
	Object       engine.ObjectKey // zero if the result is about several objects
	Verdict      TestVerdict
	Wanted, Got  string // Kyverno's words for what a rule does: pass, skip, error
	Text         string // explains the verdict; empty if passed
	Reason       string // why the rule did not act; empty if it did
	Note         string // a remark besides the verdict
	Foreign      bool   // the rule does not mutate
	// Difference is the change from the wanted object to the actual one; nil if they are equal. Places are
	// where the wanted object and each of its Fields stand.
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

// toShow returns the result without values of Secrets.
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

const valueLength = 400 // of a value in Fields, in bytes

// Fields returns a line for each unexpected field: "spec.replicas: wanted 2, got 3", and the place where it
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
