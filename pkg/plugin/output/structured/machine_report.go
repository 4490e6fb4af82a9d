package structured

import (
	"bytes"
	"fmt"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Report prints one report object. It is written as it is made, unless something
// works on the whole of it.
type Report struct {
	options Options
	report  *ReportWriter
	held    *bytes.Buffer // the report as JSON, for whole
	whole   func(report []byte) (string, error)
}

// NewReport returns a printer of the report.
func NewReport(o Options, asYAML bool) *Report {
	return &Report{options: o, report: NewReportWriter(o.Out, asYAML, head(o))}
}

// NewQuery returns a printer of what a JMESPath expression finds in the report. It
// fails for an expression that is none.
func NewQuery(o Options, expression string, asYAML bool) (*Report, error) {
	query, err := ParseQuery(expression, asYAML)
	if err != nil {
		return nil, err
	}
	return newHeld(o, query.Find), nil
}

// newHeld returns a printer of what is made of the whole report.
func newHeld(o Options, whole func(report []byte) (string, error)) *Report {
	held := &bytes.Buffer{}
	return &Report{options: o, report: NewReportWriter(held, false, head(o)), held: held, whole: whole}
}

func head(o Options) Head {
	return Head{Kind: "PreviewReport", List: "changes", Context: o.Context}
}

// Print adds an object that would change, or of which there is something to tell.
func (p *Report) Print(c engine.Change) error {
	redact.LearnChange(p.options.Masker, &c)
	if !redact.Listed(&c, p.options.Explain) {
		return nil
	}
	if err := p.report.Add(p.options.reported(&c)); err != nil {
		return fmt.Errorf("%s: writing the report: %w", c.Subject, err)
	}
	return nil
}

// Close ends the report, or prints what is made of it.
func (p *Report) Close(s engine.Summary) error {
	if err := p.report.Close(summaryOf(s)); err != nil || p.whole == nil {
		return err
	}
	text, err := p.whole(p.held.Bytes())
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.options.Out, text)
	return err
}
