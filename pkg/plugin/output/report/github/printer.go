package github

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// New returns a printer that writes the annotations when it is closed. Summary
// takes what is written for the summary of the step; nil where there is none.
func New(o output.Options, summary output.Printer) *Printer {
	w := words{broken: "failed, denied or not supported on", told: report.Fail, warned: "would change"}
	return &Printer{annotations: newAnnotations(o, w), summary: summary}
}

// Printer writes the report.
type Printer struct {
	annotations
	summary output.Printer
}

// Print counts what the rules would change on an object.
func (p *Printer) Print(c engine.Change) error {
	p.add(report.Describe(&c, p.masker))
	if p.summary == nil {
		return nil
	}
	return p.summary.Print(c)
}

// Trouble adds an annotation.
func (p *Printer) Trouble(err error) error {
	p.trouble(err)
	if t, ok := p.summary.(report.Troubled); ok {
		return t.Trouble(err)
	}
	return nil
}

// Close writes the annotations, errors first, and ends the summary.
func (p *Printer) Close(s engine.Summary) error {
	if err := p.write(wording.Counts(s)); err != nil || p.summary == nil {
		return err
	}
	return p.summary.Close(s)
}
