package structured

import (
	"bytes"
	"fmt"
	"io"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// Report prints one report object: what was evaluated.
type Report struct {
	encoder
	*document
}

// document is a report that is written as it is made, unless something works on the
// whole of it.
type document struct {
	out    io.Writer
	report *ReportWriter
	held   *bytes.Buffer // the report as JSON, for whole
	whole  func(report []byte) (string, error)
}

func newDocument(o output.Options, asYAML bool, head Head) *document {
	return &document{out: o.Out, report: NewReportWriter(o.Out, asYAML, head)}
}

// newHeld returns a document of which something is made and printed instead.
func newHeld(o output.Options, head Head, whole func(report []byte) (string, error)) *document {
	held := &bytes.Buffer{}
	return &document{out: o.Out, report: NewReportWriter(held, false, head), held: held, whole: whole}
}

// queried returns a document, or what the query of the options finds in it. It fails
// for a query that is none.
func queried(o output.Options, asYAML bool, head Head) (*document, error) {
	if o.Query == "" {
		return newDocument(o, asYAML, head), nil
	}
	query, err := ParseQuery(o.Query, asYAML)
	if err != nil {
		return nil, err
	}
	return newHeld(o, head, query.Find), nil
}

// end ends the report with its summary, or prints what is made of it.
func (d *document) end(summary any) error {
	if err := d.report.Close(summary); err != nil || d.whole == nil {
		return err
	}
	text, err := d.whole(d.held.Bytes())
	if err != nil {
		return err
	}
	_, err = io.WriteString(d.out, text)
	return err
}

// NewReport returns a printer of the report, or of what the query of the options finds
// in it. It fails for a query that is none.
func NewReport(o output.Options, asYAML bool) (*Report, error) {
	d, err := queried(o, asYAML, previewHead(o))
	return &Report{encoder{o}, d}, err
}

func previewHead(o output.Options) Head {
	return Head{Kind: "PreviewReport", List: "changes", Context: o.Context}
}

// Print adds an object that would change, or that needs a remark, or what went wrong beside the
// objects. The summary ends the report.
func (p *Report) Print(e output.Event) error {
	switch e := e.(type) {
	case output.Fleet:
		p.report.head.Clusters = p.clusters(e)
	case output.Evaluated:
		return p.add(e.Change)
	case output.Problem:
		p.report.Problem(e.Err.Error())
	case output.Summary:
		return p.end(summaryOf(e.Summary))
	}
	return nil
}

func (p *Report) add(c *engine.Change) error {
	if !output.Listed(c, p.Explain) {
		return nil
	}
	if err := p.report.Add(p.reported(c)); err != nil {
		return fmt.Errorf("%s: writing the report: %w", c.Subject, err)
	}
	return nil
}

// Close has nothing to add to the summary.
func (p *Report) Close() error { return nil }
