// Package junit writes a run as JUnit XML: a test case for each rule and object.
//
// A test that fails is a rule that would change the object, one in error a rule
// that could not be evaluated, a skipped one a rule that was skipped. Of a
// run that writes, a test in error is a change that was not made, and one that is
// skipped an object that was left alone. The elements are those of the schema of
// Jenkins' xUnit plugin (junit-10.xsd), which GitLab and others read as well. There
// are no times in it, since equal runs are written as equal bytes.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// New returns a report that collects the test cases of each policy until its end.
func New(o output.Options) *Report {
	return &Report{out: o.Out, index: map[string]*suite{}}
}

// Report is the report.
type Report struct {
	out    io.Writer
	suites []*suite // in the order in which they were met
	index  map[string]*suite
}

// suite is the test suite of a policy.
type suite struct {
	name, pkg, origin, severity      string
	tests, failures, errors, skipped int
	cases                            strings.Builder
}

// Add adds a test case for each finding.
func (p *Report) Add(object *report.Object) error {
	for i := range object.Findings {
		f := &object.Findings[i]
		name := object.Name
		if f.Rule.Rule != "" {
			name = f.Rule.Rule + ": " + name
		}
		if f.Rule.Via != "" {
			name += " via " + f.Rule.Via
		}
		p.suiteOf(f.Rule).add(name, f)
	}
	return nil
}

// suiteOf is the suite of a rule's policy.
func (p *Report) suiteOf(r engine.RuleRef) *suite {
	s := p.suite(strings.TrimSpace(r.Dialect+" "+r.Policy), r.Dialect)
	if s.origin == "" {
		s.origin, s.severity = r.Origin, r.Severity
	}
	return s
}

func (p *Report) suite(name, pkg string) *suite {
	s := p.index[name]
	if s == nil {
		s = &suite{name: name, pkg: pkg}
		p.index[name] = s
		p.suites = append(p.suites, s)
	}
	return s
}

func (s *suite) add(name string, f *report.Finding) {
	s.tests++
	fmt.Fprintf(&s.cases, "    <testcase name=%s classname=%s time=\"0\"", attribute(name), attribute(className(s)))
	body := s.result(f)
	if body == "" {
		s.cases.WriteString("/>\n")
	} else {
		s.cases.WriteString(">\n" + body + "    </testcase>\n")
	}
}

// result is what stands in a test case, and counts it.
func (s *suite) result(f *report.Finding) string {
	details := f.Details()
	switch f.Verdict {
	case report.Fail:
		s.failures++
		kind := "would-change"
		if f.Outcome != string(engine.Changed) { // of a comparison
			kind = f.Outcome
		}
		return element("failure", kind, f.Message, details)
	case report.Error:
		s.errors++
		return element("error", f.Outcome, f.Message, details)
	case report.Skip:
		s.skipped++
		return element("skipped", f.Outcome, f.Message, details)
	case report.Pass:
	}
	if details == "" {
		return ""
	}
	return "      <system-out>" + text(details) + "</system-out>\n"
}

// problems is the suite of what went wrong beside the objects.
const problems = "kubectl-mutate problems"

// Problem adds a test case in error.
func (p *Report) Problem(problem report.Problem) error {
	s := p.suite(problems, "kubectl-mutate")
	s.tests++
	s.errors++
	fmt.Fprintf(&s.cases, "    <testcase name=%s classname=%s time=\"0\">\n%s    </testcase>\n",
		attribute(problem.Where), attribute(className(s)), element("error", "problem", problem.Text, ""))
	return nil
}

// Write writes the report. A policy of which no rule matched anything is an empty
// suite.
func (p *Report) Write(s evaluation.Summary) error {
	for i := range s.Rules {
		p.suiteOf(s.Rules[i].Rule)
	}
	if _, err := io.WriteString(p.out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"); err != nil {
		return err
	}
	for i, s := range p.suites {
		if _, err := io.WriteString(p.out, s.start(i)+s.cases.String()+"  </testsuite>\n"); err != nil {
			return err
		}
	}
	_, err := io.WriteString(p.out, "</testsuites>\n")
	return err
}

// start is the start tag of a suite and what stands before its cases.
func (s *suite) start(id int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  <testsuite id=\"%d\" name=%s package=%s tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"0\">\n",
		id, attribute(s.name), attribute(s.pkg), s.tests, s.failures, s.errors, s.skipped)
	if s.origin != "" {
		fmt.Fprintf(&b, "    <properties>\n      <property name=\"origin\" value=%s/>\n", attribute(s.origin))
		if s.severity != "" {
			fmt.Fprintf(&b, "      <property name=\"severity\" value=%s/>\n", attribute(s.severity))
		}
		b.WriteString("    </properties>\n")
	}
	return b.String()
}

// className makes consumers group the test cases by dialect and policy: they take
// what stands before the last dot for a package.
func className(s *suite) string {
	return s.pkg + "." + strings.ReplaceAll(strings.TrimPrefix(s.name, s.pkg+" "), ".", "_")
}

// element is one that stands in a test case.
func element(name, kind, message, body string) string {
	start := "      <" + name + " type=" + attribute(kind) + " message=" + attribute(message)
	if body == "" {
		return start + "/>\n"
	}
	return start + ">" + text(body) + "</" + name + ">\n"
}

// attribute is a quoted value. What no XML document may hold becomes U+FFFD.
func attribute(s string) string { return `"` + escaped(s) + `"` }

// text is character data, whose line breaks stay what they are.
func text(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = escaped(lines[i])
	}
	return strings.Join(lines, "\n")
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
