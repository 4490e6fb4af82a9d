// This file writes a run as JUnit XML: a test case for each rule and object.
//
// A test fails if the rule would change the object, is in error if the rule could not be evaluated, and is
// skipped if the rule was. In a run that writes, a test in error is a change that was not made, and a
// skipped one an object that was left to its manager. The elements are those of the schema of Jenkins' xUnit
// plugin (junit-10.xsd), which GitLab and others read as well. It has no times, since equal runs are written
// as equal bytes.

package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// NewJUnit returns a report that collects the test cases of each policy until its end.
func NewJUnit(o output.Options) *JUnit {
	return &JUnit{out: o.Out, index: map[string]*suite{}}
}

// JUnit is the report.
type JUnit struct {
	out    io.Writer
	suites []*suite // in the order of arrival
	index  map[string]*suite
}

// suite is the test suite of a policy.
type suite struct {
	Name, Package, Origin, Severity string
	Cases                           []testCase
	Counts                          map[string]int // of the cases, by Result
}

// testCase is the result of a rule on an object.
type testCase struct {
	Name    string
	Result  string // "failure", "error", "skipped"; empty if passed
	Type    string // of the result
	Message string
	Details string
}

// document is the template of the report. The result of a case is an element of its name.
var document = template.Must(template.New("junit").Funcs(template.FuncMap{"attribute": attribute, "text": junitText}).Parse( //nolint:gochecknoglobals // an immutable table
	`<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
{{- range $id, $suite := .}}
  <testsuite id="{{$id}}" name={{attribute .Name}} package={{attribute .Package}} tests="{{len .Cases}}" failures="{{index .Counts "failure"}}" errors="{{index .Counts "error"}}" skipped="{{index .Counts "skipped"}}" time="0">
{{- if .Origin}}
    <properties>
      <property name="origin" value={{attribute .Origin}}/>
{{- with .Severity}}
      <property name="severity" value={{attribute .}}/>
{{- end}}
    </properties>
{{- end}}
{{- range .Cases}}
    <testcase name={{attribute .Name}} classname={{attribute $suite.Class}} time="0"
{{- if .Result}}>
      <{{.Result}} type={{attribute .Type}} message={{attribute .Message}}{{if .Details}}>{{text .Details}}</{{.Result}}>{{else}}/>{{end}}
    </testcase>
{{- else if .Details}}>
      <system-out>{{text .Details}}</system-out>
    </testcase>
{{- else}}/>{{end}}
{{- end}}
  </testsuite>
{{- end}}
</testsuites>
`))

// Add adds a test case for each finding.
func (p *JUnit) Add(object *Object) error {
	for i := range object.Findings {
		f := &object.Findings[i]
		at := testCase{Name: object.Name, Type: f.Outcome, Message: f.Message, Details: f.Details()}
		if f.Rule.Rule != "" {
			at.Name = f.Rule.Rule + ": " + at.Name
		}
		if f.Rule.Via != "" {
			at.Name += " via " + f.Rule.Via
		}
		switch f.Verdict {
		case Fail:
			if at.Result = "failure"; f.Outcome == string(engine.Changed) { // otherwise it is of a comparison
				at.Type = "would-change"
			}
			if place := object.Place; place.Path != "" {
				at.Details += fmt.Sprintf("\nnote: the object was read at %s:%d", escaped(place.Path), place.Line)
			}
		case Error:
			at.Result = "error"
		case Skip:
			at.Result = "skipped"
		case Pass:
		}
		p.suiteOf(f.Rule).add(at)
	}
	return nil
}

// suiteOf returns the suite of a rule's policy.
func (p *JUnit) suiteOf(r engine.RuleRef) *suite {
	s := p.suite(strings.TrimSpace(r.Dialect+" "+r.Policy), r.Dialect)
	if s.Origin == "" {
		s.Origin, s.Severity = r.Origin, r.Severity
	}
	return s
}

func (p *JUnit) suite(name, pkg string) *suite {
	s := p.index[name]
	if s == nil {
		s = &suite{Name: name, Package: pkg, Counts: map[string]int{}}
		p.index[name] = s
		p.suites = append(p.suites, s)
	}
	return s
}

func (s *suite) add(c testCase) {
	s.Cases = append(s.Cases, c)
	s.Counts[c.Result]++
}

// Problem adds a test case in error to a suite of problems.
func (p *JUnit) Problem(problem Problem) error {
	p.suite("kubectl-mutate problems",
		"kubectl-mutate").add(testCase{
		Name: problem.Where, Result: "error", Type: "problem",
		Message: problem.Text,
	})
	return nil
}

// Write writes the report. A policy without a rule that matched is an empty suite.
func (p *JUnit) Write(s evaluation.Summary) error {
	for i := range s.Rules {
		p.suiteOf(s.Rules[i].Rule)
	}
	return document.Execute(p.out, p.suites)
}

// Class makes consumers group the test cases by dialect and policy: they read the name up to the last dot as
// a package.
func (s *suite) Class() string {
	return s.Package + "." + strings.ReplaceAll(strings.TrimPrefix(s.Name, s.Package+" "), ".", "_")
}

// attribute returns a quoted value. Characters that XML does not allow become U+FFFD.
func attribute(s string) string { return `"` + junitEscaped(s) + `"` }

// junitText returns character data with its line breaks.
func junitText(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = junitEscaped(lines[i])
	}
	return strings.Join(lines, "\n")
}

func junitEscaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
