// Package report describes a run for the formats of --report: the finding of each rule on each object,
// masked and escaped.
//
// A format implements Report; Printer feeds it with the events of a run.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Verdict sums up a rule's outcomes on an object: whether the object is as the policies want it.
type Verdict string

// The verdicts, named as in policy reports. A run that writes has no Fail: an object is changed, or there is
// an Error or a reason to Skip it.
const (
	Pass  Verdict = "pass"  // the rule finds nothing to change
	Fail  Verdict = "fail"  // the rule would change the object
	Error Verdict = "error" // the rule failed, was denied or is not supported; or its change was not made
	Skip  Verdict = "skip"  // the rule was skipped, or the object left alone
)

// The limits of a finding.
const (
	fieldsHeld  = 50 // with their values
	fieldsNamed = 3  // in a message
)

// Finding is the result of one rule on one object, however often the rule ran.
type Finding struct {
	Rule    engine.RuleRef // not masked
	Name    string         // the rule, as wording.Rule writes it
	Place   Place          // of the policy
	Verdict Verdict
	// Outcome is the worst engine.Outcome of the rule's steps; in a run that writes, the write.Outcome of the
	// object.
	Outcome string
	// Message is the result in one line.
	Message string
	// Changed counts the fields that the rule wrote last, and Fields are the first of them; in a run that
	// writes, those of the object.
	Changed int
	Fields  []Field
	// Reasons say why the rule failed or was skipped; Notes and Warnings are remarks on what it did.
	Reasons, Notes, Warnings []string
	outcomes                 []engine.Outcome // of the steps
	paths                    []fieldpath.Path // of the fields

	// Lines show the variant of a difference, in a comparison, or the unexpected fields of a test.
	Lines []string
}

// message returns the Message of a rule that was evaluated.
func (f *Finding) message() string {
	switch {
	case f.Verdict == Fail:
		return f.fields("would change")
	case len(f.Reasons) > 0:
		return f.Outcome + ": " + strings.Join(f.Reasons, "; ")
	case f.Verdict != Pass:
		return f.Outcome
	}
	return "the rule finds nothing to change"
}

// fields counts the fields and names the first.
func (f *Finding) fields(what string) string {
	var named []string
	for i := range min(len(f.Fields), fieldsNamed) {
		named = append(named, f.Fields[i].Path)
	}
	return fmt.Sprintf("%s %s: %s", wording.Plural(f.Changed, "field"), what, engine.FewOf(named, f.Changed))
}

// Details returns lines beyond the message, without a final line break: fields with their values, notes and
// warnings. It may be empty.
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
	lines = append(lines, f.Lines...)
	for _, w := range f.Warnings {
		lines = append(lines, "warning: "+w)
	}
	return strings.Join(lines, "\n")
}

// Field is a field that differs. Its strings are masked and escaped.
type Field struct {
	Path string            `json:"path"`
	Kind engine.ChangeKind `json:"kind"`
	// From and To are the values as shortened JSON; for a moved element, its places. From is empty for an added
	// field, To for a removed one.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// String returns a line: "~ spec.replicas: 1 -> 2".
func (f *Field) String() string {
	switch f.Kind {
	case engine.Added:
		return "+ " + f.Path + ": " + f.To
	case engine.Removed:
		return "- " + f.Path + ": " + f.From
	case engine.Moved:
		return "> " + f.Path + ": from place " + f.From + " to " + f.To
	case engine.Replaced:
	}
	return "~ " + f.Path + ": " + f.From + " -> " + f.To
}

// FieldOf returns a field of a change, escaped.
func FieldOf(f *engine.FieldChange) Field {
	out := Field{Path: engine.PathString(f.Path), Kind: f.Kind}
	escape(&out.Path)
	if out.Path == "" {
		out.Path = "(the whole object)"
	}
	if f.Kind != engine.Added {
		out.From = valueText(f.From)
	}
	if f.Kind != engine.Removed {
		out.To = valueText(f.To)
	}
	return out
}

// valueLength is the maximum length of a value in a report, in bytes.
const valueLength = 400

// valueText returns a value as shortened JSON on one line.
func valueText(v any) string {
	text, err := structured.MarshalLine(v)
	if err != nil {
		return fmt.Sprintf("(no JSON value: %T)", v)
	}
	text = strings.TrimSuffix(text, "\n")
	escape(&text)
	return Cut(text, valueLength)
}

// Cut shortens a string that is longer than so many bytes, and adds its length.
func Cut(s string, length int) string {
	if len(s) <= length {
		return s
	}
	return fmt.Sprintf("%s (%d bytes)", engine.Shorten(s, length), len(s))
}

// Place is the place of a policy or manifest in a file, for programs that show files.
type Place struct {
	// Path of the file, with slashes and not escaped; empty without a file.
	Path string
	Line int
}

// PlaceOf returns the place in an origin: "policies/team.yaml:12". Standard input, URLs and the cluster have
// no place.
func PlaceOf(origin string) Place {
	at := strings.LastIndexByte(origin, ':')
	if at < 0 || strings.Contains(origin, "://") {
		return Place{}
	}
	line, err := strconv.Atoi(origin[at+1:])
	if err != nil || line < 1 || origin[:at] == "stdin" {
		return Place{}
	}
	return Place{Path: filepath.ToSlash(filepath.Clean(origin[:at])), Line: line}
}

// Problem is an error that is not about an object. Its strings are escaped.
type Problem struct {
	// Where is the subject of the problem: "ClusterPolicy team-labels, rule add".
	Where string
	Text  string // the problem, with Where and Origin
	// Origin is where the policy was read, and Place the same for programs; both are empty for other problems.
	Origin string
	Place  Place
}

// ProblemOf describes an error.
func ProblemOf(err error) Problem {
	p := Problem{Where: "kubectl mutate", Text: err.Error()}
	var broken *engine.CompileError
	if errors.As(err, &broken) {
		p.Origin, p.Place = broken.Place(), PlaceOf(broken.Place())
		p.Where = cmp.Or(strings.TrimSuffix(broken.Policy+", rule "+broken.Rule, ", rule "), p.Where)
	}
	escape(&p.Where, &p.Text, &p.Origin)
	return p
}

// Report is a format. Its strings are masked and escaped, so that it cares only for the syntax.
type Report interface {
	// Add adds an object and its findings.
	Add(*Object) error
	// Problem adds an error that is not about an object.
	Problem(Problem) error
	// Write ends the report. The summary of a run that writes is empty.
	Write(evaluation.Summary) error
}

// Printer writes the events of a run as a Report: what was evaluated, or in a run that writes what was
// written.
type Printer struct {
	report  Report
	writes  bool
	summary evaluation.Summary
	// failed has the objects still to be written, with the findings of rules that could not be evaluated; order
	// lists them.
	failed map[engine.ObjectKey]Object
	order  []engine.ObjectKey
}

// New returns a printer of a report.
func New(o output.Options, r Report) *Printer {
	return &Printer{report: r, writes: o.Writes, failed: map[engine.ObjectKey]Object{}}
}

// Print adds an event to the report.
func (p *Printer) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Evaluated:
		if p.writes {
			p.keepFailed(e.Change)
			return nil
		}
		object := Describe(e.Change)
		return p.report.Add(&object)
	case output.Compared:
		object, err := DescribeCompared(e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Subject, err)
		}
		return p.report.Add(&object)
	case output.Comparison:
		for _, side := range compare.Sides() {
			for i := range e.Rules[side] {
				object := DescribeExercise(side, &e.Rules[side][i])
				if err := p.report.Add(&object); err != nil {
					return err
				}
			}
		}
	case output.Written:
		object, key := DescribeWritten(e), e.Key.Named()
		if failed, ok := p.failed[key]; ok {
			object.Findings = joined(object.Findings, failed.Findings)
			delete(p.failed, key)
		}
		return p.report.Add(&object)
	case output.Tested:
		object := DescribeTested(e)
		return p.report.Add(&object)
	case output.Problem:
		return p.report.Problem(ProblemOf(e.Err))
	case output.Summary:
		if !p.writes {
			p.summary = e.Summary
			p.summary.Rules = slices.Clone(e.Rules)
			for i := range p.summary.Rules {
				p.summary.Rules[i].Rule = escapedRule(p.summary.Rules[i].Rule)
			}
		}
	}
	return nil
}

// keepFailed keeps the findings of rules that could not be evaluated on an object.
func (p *Printer) keepFailed(c *engine.Change) {
	if !c.Incomplete() {
		return
	}
	object := Describe(c)
	object.Findings = slices.DeleteFunc(object.Findings, func(f Finding) bool { return f.Verdict != Error })
	for i := range object.Findings { // the write reports the changes
		object.Findings[i].Changed, object.Findings[i].Fields = 0, nil
	}
	key := c.Subject.Named()
	p.failed[key] = object
	p.order = append(p.order, key)
}

// Close writes the report, with the objects that were not written after all.
func (p *Printer) Close() error {
	for _, key := range p.order {
		if object, ok := p.failed[key]; ok {
			if err := p.report.Add(&object); err != nil {
				return err
			}
		}
	}
	return p.report.Write(p.summary)
}

// joined joins the findings of an object that was written and those of rules that could not be evaluated on
// it. A rule may be in both.
func joined(written, failed []Finding) []Finding {
	var out []Finding
	for _, f := range failed {
		for _, w := range written {
			if w.Rule == f.Rule {
				f.Changed, f.Fields = w.Changed, w.Fields
				f.Notes = append(slices.Clone(f.Notes), w.Message)
			}
		}
		out = append(out, f)
	}
	for i := range written {
		if !slices.ContainsFunc(failed, func(f Finding) bool { return f.Rule == written[i].Rule }) {
			out = append(out, written[i])
		}
	}
	return out
}
