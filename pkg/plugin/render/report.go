package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jmespath/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/yamltext"
)

// document writes one report object piece by piece: fields in the order in which
// they come, and one list whose elements are written as they come.
type document struct {
	out    io.Writer
	yaml   bool
	fields int
	items  int
}

func (d *document) field(name string, v any) error {
	text, err := d.text(map[string]any{name: v})
	if err != nil {
		return err
	}
	if !d.yaml {
		// Of {"name": value}, what is between the braces.
		text = strings.TrimSuffix(strings.TrimPrefix(text, "{\n"), "\n}\n")
		text = d.comma() + text
	}
	d.fields++
	_, err = io.WriteString(d.out, text)
	return err
}

func (d *document) comma() string {
	if d.fields == 0 {
		return "{\n"
	}
	return ",\n"
}

func (d *document) item(list string, v any) error {
	text, err := d.text([]any{v})
	if err != nil {
		return err
	}
	var b strings.Builder
	switch {
	case d.yaml && d.items == 0:
		b.WriteString(list + ":\n")
	case !d.yaml && d.items == 0:
		b.WriteString(d.comma() + `    "` + list + "\": [\n")
	case !d.yaml:
		b.WriteString(",\n")
	}
	if d.yaml {
		b.WriteString(text)
	} else {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "[\n"), "\n]\n")
		b.WriteString("    " + strings.ReplaceAll(text, "\n", "\n    "))
	}
	d.items++
	_, err = io.WriteString(d.out, b.String())
	return err
}

// endList closes the list, and writes an empty one if nothing was in it.
func (d *document) endList(name string) error {
	if d.items == 0 {
		return d.field(name, []any{})
	}
	d.fields++
	if d.yaml {
		return nil
	}
	_, err := io.WriteString(d.out, "\n    ]")
	return err
}

func (d *document) end() error {
	if d.yaml {
		return nil
	}
	_, err := io.WriteString(d.out, "\n}\n")
	return err
}

func (d *document) text(v any) (string, error) {
	if d.yaml {
		out, err := yamltext.Marshal(v)
		return string(out), err
	}
	out, err := marshal(v, "    ")
	return string(out) + "\n", err
}

// report is a document with the fields that every report has.
type report struct {
	document
	kind, list string
	context    Context
	begun      bool
}

func (r *report) begin() error {
	if r.begun {
		return nil
	}
	r.begun = true
	for _, f := range []struct {
		name  string
		value any
	}{{"apiVersion", ReportVersion}, {"kind", r.kind}, {"context", r.context}} {
		if err := r.field(f.name, f.value); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

func (r *report) add(v any) error {
	if err := r.begin(); err != nil {
		return err
	}
	return r.item(r.list, v)
}

func (r *report) close(summary any) error {
	if err := r.begin(); err != nil {
		return err
	}
	if err := r.endList(r.list); err != nil {
		return err
	}
	if err := r.field("summary", summary); err != nil {
		return err
	}
	return r.end()
}

// reportPrinter prints one report object. It is written as it is made, unless
// something works on the whole of it.
type reportPrinter struct {
	Options
	report
	held  *bytes.Buffer // the report as JSON, for whole
	whole func(report []byte) (string, error)
}

func newReportPrinter(format string, o Options) (Printer, error) {
	p := newReport(o, document{out: o.Out, yaml: format == YAML})
	if o.Query == "" {
		return p, nil
	}
	query, err := jmespath.Compile(o.Query)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", o.Query, err)
	}
	return newHeldReport(o, func(report []byte) (string, error) {
		return runQuery(query, report, format == YAML)
	}), nil
}

func newReport(o Options, d document) *reportPrinter {
	p := &reportPrinter{Options: o}
	p.report = report{document: d, kind: PreviewReportKind, list: "changes", context: o.Context}
	return p
}

// newHeldReport returns a printer that prints what is made of the whole report.
func newHeldReport(o Options, whole func(report []byte) (string, error)) *reportPrinter {
	held := &bytes.Buffer{}
	p := newReport(o, document{out: held})
	p.held, p.whole = held, whole
	return p
}

// Print adds an object that would change, or of which there is something to tell.
func (p *reportPrinter) Print(c engine.Change) error {
	p.learn(&c)
	if !p.shown(&c) {
		return nil
	}
	if err := p.add(p.reported(&c)); err != nil {
		return fmt.Errorf("%s: writing the report: %w", c.Subject, err)
	}
	return nil
}

// Close ends the report, or prints what is made of it.
func (p *reportPrinter) Close(s engine.Summary) error {
	if err := p.close(summaryOf(s)); err != nil || p.whole == nil {
		return err
	}
	text, err := p.whole(p.held.Bytes())
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.Out, text)
	return err
}

// runQuery is what a query finds in a report.
func runQuery(query *jmespath.JMESPath, report []byte, asYAML bool) (string, error) {
	var whole any
	if err := json.Unmarshal(report, &whole); err != nil {
		return "", fmt.Errorf("reading the report: %w", err)
	}
	found, err := query.Search(whole)
	if err != nil {
		return "", fmt.Errorf("query: %w", err)
	}
	out := document{yaml: asYAML}
	text, err := out.text(found)
	if err != nil {
		return "", fmt.Errorf("writing what the query found: %w", err)
	}
	return text, nil
}
