package structured

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Columns prints a row for each change of the report.
type Columns struct {
	Report  // whose changes are the rows
	rows    *Rows
	columns []customColumn
	begun   bool
}

// rowsHeld is the maximum number of rows that are aligned together.
const rowsHeld = 1000

// Rows aligns the cells of rows, the first of which are headers.
type Rows struct {
	lines interface {
		io.Writer
		Flush() error
	}
	count int
}

// NewRows returns rows in kubectl's layout.
func NewRows(out io.Writer) *Rows { return &Rows{lines: printers.GetNewTabWriter(out), count: -1} }

// Add adds a row of escaped cells.
func (r *Rows) Add(cells ...string) error {
	_, err := fmt.Fprintln(r.lines, strings.Join(cells, "\t"))
	if r.count++; err == nil && r.count > 0 && r.count%rowsHeld == 0 {
		err = r.Flush()
	}
	return err
}

// Flush writes the rows that are held back.
func (r *Rows) Flush() error { return r.lines.Flush() }

type customColumn struct {
	header string
	value  *jsonpath.JSONPath
}

// relaxed matches the paths of columns that kubectl takes: "{.a}", ".a" and "a" are the same.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

var errNoColumns = errors.New("-o custom-columns: name columns as HEADER:PATH,HEADER:PATH, with the paths of a change in the report, such as KIND:.object.kind")

// NewCustomColumns returns a printer of columns, "HEADER:PATH,HEADER:PATH", over each change of the report.
// It fails for invalid columns.
func NewCustomColumns(o output.Options, text string) (output.Format, error) {
	p := newColumns(o)
	for column := range strings.SplitSeq(text, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" {
			return nil, errNoColumns
		}
		if err := p.add(header, path); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// NewColumnsTemplate is NewCustomColumns for the content of a file, as in kubectl: a line of headers, and
// below each the path of its column.
func NewColumnsTemplate(o output.Options, text string) (output.Format, error) {
	headers, paths, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n")
	paths, _, _ = strings.Cut(paths, "\n")
	names, below := strings.Fields(headers), strings.Fields(paths)
	if len(names) == 0 || len(names) != len(below) {
		return nil, fmt.Errorf("-o custom-columns-file: the file has %s and %s; it needs a line of headers, and a line with as many paths", wording.Plural(len(names), "header"), wording.Plural(len(below), "path"))
	}
	p := newColumns(o)
	for i, header := range names {
		if err := p.add(header, below[i]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func newColumns(o output.Options) *Columns {
	return &Columns{Report: Report{Options: o}, rows: NewRows(o.Out)}
}

func (p *Columns) add(header, path string) error {
	match := relaxed.FindStringSubmatch(path)
	if match == nil {
		return errNoColumns
	}
	value := jsonpath.New(header).AllowMissingKeys(true)
	if err := value.Parse("{." + match[1] + match[2] + "}"); err != nil {
		return fmt.Errorf("-o custom-columns: %s: %w", header, err)
	}
	p.columns = append(p.columns, customColumn{header, value})
	return nil
}

// Print shows the row of an object that would change or needs a remark.
func (p *Columns) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Evaluated:
		return p.change(e.Change)
	case output.Summary:
		if err := p.headers(); err != nil {
			return err
		}
		return p.Flush()
	}
	return nil
}

// Flush implements output.Flusher.
func (p *Columns) Flush() error { return p.rows.Flush() }

func (p *Columns) change(c *engine.Change) error {
	if !output.Listed(c, p.Explain) {
		return nil
	}
	var w jsonWriter
	var change map[string]any
	if err := cmp.Or(w.value(p.reported(c), ""), json.Unmarshal(w.Bytes(), &change)); err != nil {
		return fmt.Errorf("%s: %w", c.Subject, err)
	}
	cells := make([]string, len(p.columns))
	var err error
	for i, column := range p.columns {
		if cells[i], err = column.cell(change); err != nil {
			return fmt.Errorf("%s: column %s: %w", c.Subject, column.header, brief(err))
		}
	}
	return p.row(cells)
}

func (c *customColumn) cell(change map[string]any) (string, error) {
	results, err := c.value.FindResults(change)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, list := range results {
		for _, v := range list {
			parts = append(parts, fmt.Sprint(v.Interface()))
		}
	}
	if len(parts) == 0 {
		return "<none>", nil
	}
	return strings.Join(parts, ","), nil
}

// row writes a row, after the headers.
func (p *Columns) row(cells []string) error {
	if err := p.headers(); err != nil {
		return err
	}
	for i, cell := range cells {
		cells[i] = redact.Escape(cell, "")
	}
	return p.rows.Add(cells...)
}

func (p *Columns) headers() error {
	if p.begun {
		return nil
	}
	p.begun = true
	headers := make([]string, len(p.columns))
	for i, column := range p.columns {
		headers[i] = column.header
	}
	return p.row(headers)
}

// Close has nothing to add.
func (p *Columns) Close() error { return nil }

// NewJSONPath returns a printer of what a JSONPath template finds in the report, as text or as a JSON list.
// It fails for an invalid template.
func NewJSONPath(o output.Options, template string, asJSON bool) (output.Format, error) {
	path := jsonpath.New("out").AllowMissingKeys(true)
	if err := path.Parse(template); err != nil {
		return nil, fmt.Errorf("-o jsonpath: %w", err)
	}
	path.EnableJSONOutput(asJSON)
	escape := escapeText
	if asJSON {
		escape = redact.EscapeJSON
	}
	return newTemplated(o, "jsonpath", escape, func(b *bytes.Buffer, report map[string]any) error {
		return brief(path.Execute(b, report))
	}), nil
}

// NewGoTemplate returns a printer of the report through a Go template. It fails for an invalid template.
func NewGoTemplate(o output.Options, template string) (output.Format, error) {
	p, err := printers.NewGoTemplatePrinter([]byte(template))
	if err != nil {
		return nil, fmt.Errorf("-o go-template: %w", err)
	}
	repeated := fmt.Sprintf("error executing template %q: ", template)
	return newTemplated(o, "go-template", escapeText, func(b *bytes.Buffer, report map[string]any) error {
		err := p.PrintObj(&unstructured.Unstructured{Object: report}, b)
		if err != nil {
			err = errors.New(strings.TrimPrefix(err.Error(), repeated))
		}
		return brief(err)
	}), nil
}

// escapeText escapes the output of a template for a terminal.
func escapeText(text []byte) []byte { return []byte(redact.Escape(string(text), "\n\t")) }

func newTemplated(o output.Options, format string, escape func([]byte) []byte,
	execute func(*bytes.Buffer, map[string]any) error,
) output.Format {
	r := &Report{Options: o, kind: previewKind, list: previewList}
	r.hold(func(report any) (string, error) {
		var b bytes.Buffer
		if err := execute(&b, report.(map[string]any)); err != nil {
			return "", fmt.Errorf("-o %s: %w", format, err)
		}
		return string(escape(b.Bytes())), nil
	})
	return r
}

// maxError is the maximum length of an error of a template or query, in bytes.
const maxError = 300

// quoting matches an error in which a library repeats the value that it failed on, perhaps the whole report.
type quoting struct {
	text    *regexp.Regexp
	instead string
}

// quotings are the errors of client-go's JSONPath, go-jmespath and text/template.
var quotings = []quoting{ //nolint:gochecknoglobals // an immutable table
	{regexp.MustCompile(`(?s)^.* is not array or slice and cannot be filtered$`), "what is filtered is no list"},
	{regexp.MustCompile(`(?s)^.* is not convertible to (\S+)$`), "a key is not convertible to $1"},
	{regexp.MustCompile(`(?s)^Invalid type for: .*, expected: \[\]jmespath\.jpType\{(.*)\}$`), "a function was given a value of another type than it takes, which is $1"},
	{regexp.MustCompile(`(?s)(if/with can't use|range can't iterate over) .*$`), "$1 a value of this type"},
	{regexp.MustCompile(`(?s)(can't use) .* (?:to )?(iterate over more than one variable)$`), "$1 this value to $2"},
	{regexp.MustCompile(`(?s)(non-comparable types?) .*$`), "$1"},
}

// brief returns an error without the value that caused it; nil for nil.
func brief(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, q := range quotings {
		text = q.text.ReplaceAllString(text, q.instead)
	}
	if len(text) > maxError {
		// The beginning says where it happened, the end what happened.
		text = strings.ToValidUTF8(text[:maxError/2], "") + " ... " +
			strings.ToValidUTF8(text[len(text)-maxError/2:], "")
	}
	return errors.New(text)
}
