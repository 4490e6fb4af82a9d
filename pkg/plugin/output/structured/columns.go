package structured

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

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

// rowsHeld bounds the rows that are held to line them up.
const rowsHeld = 1000

// Rows lines up the cells of rows, the first of which are headers.
type Rows struct {
	lines interface {
		io.Writer
		Flush() error
	}
	count int
}

// NewRows returns rows that are laid out as kubectl does.
func NewRows(out io.Writer) *Rows { return &Rows{lines: printers.GetNewTabWriter(out), count: -1} }

// Add adds a row of cells, in which nothing acts on a terminal.
func (r *Rows) Add(cells ...string) error {
	_, err := fmt.Fprintln(r.lines, strings.Join(cells, "\t"))
	if r.count++; err == nil && r.count > 0 && r.count%rowsHeld == 0 {
		err = r.Flush()
	}
	return err
}

// Flush writes the rows that are held.
func (r *Rows) Flush() error { return r.lines.Flush() }

type customColumn struct {
	header string
	value  *jsonpath.JSONPath
}

// relaxed is how kubectl takes the paths of columns: "{.a}", ".a" and "a" are the same.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

var errNoColumns = errors.New("-o custom-columns: name columns as HEADER:PATH,HEADER:PATH, with the paths of a change in the report, such as KIND:.object.kind")

// NewCustomColumns returns a printer of columns, "HEADER:PATH,HEADER:PATH", over each
// change of the report. It fails for a text that names none.
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

// NewColumnsTemplate is NewCustomColumns for what kubectl takes from a file: a line of
// headers, and below each the path of its column.
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

// Print shows the row of an object that would change, or that needs a remark.
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

// row writes a row, and before the first one the headers.
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
