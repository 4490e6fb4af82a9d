package render

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// newTemplated returns the printer of a format that the user describes.
func newTemplated(name, text string, o Options) (Printer, error) {
	var printer printers.ResourcePrinter
	var err error
	switch name {
	case CustomColumns:
		return newCustomColumns(text, o)
	case JSONPath:
		printer, err = newJSONPath(text)
	case GoTemplate:
		printer, err = printers.NewGoTemplatePrinter([]byte(text))
	default:
		return nil, &UnknownFormatError{Format: name + "=" + text, Allowed: formats}
	}
	if err != nil {
		return nil, fmt.Errorf("-o %s: %w", name, err)
	}
	return newHeldReport(o, func(report []byte) (string, error) {
		var whole unstructured.Unstructured
		if err := json.Unmarshal(report, &whole.Object); err != nil {
			return "", fmt.Errorf("reading the report: %w", err)
		}
		var b bytes.Buffer
		if err := printer.PrintObj(&whole, &b); err != nil {
			return "", fmt.Errorf("-o %s: %w", name, err)
		}
		return Harmless(b.String()), nil
	}), nil
}

func newJSONPath(text string) (*printers.JSONPathPrinter, error) {
	p, err := printers.NewJSONPathPrinter(text)
	if err == nil {
		p.AllowMissingKeys(true)
	}
	return p, err
}

// columnsPrinter prints a row for each change of the report.
type columnsPrinter struct {
	Options
	rows    rowWriter
	columns []customColumn
	begun   bool
}

type customColumn struct {
	header string
	value  *jsonpath.JSONPath
}

// relaxed is how kubectl takes the paths of columns: "{.a}", ".a" and "a" are the same.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

var errNoColumns = errors.New("-o custom-columns: name columns as HEADER:PATH,HEADER:PATH, with the paths of a change in the report, such as KIND:.object.kind")

func newCustomColumns(text string, o Options) (*columnsPrinter, error) {
	p := &columnsPrinter{Options: o, rows: printers.GetNewTabWriter(o.Out)}
	for column := range strings.SplitSeq(text, ",") {
		header, path, ok := strings.Cut(column, ":")
		match := relaxed.FindStringSubmatch(path)
		if !ok || header == "" || match == nil {
			return nil, errNoColumns
		}
		value := jsonpath.New(header).AllowMissingKeys(true)
		if err := value.Parse("{." + match[1] + match[2] + "}"); err != nil {
			return nil, fmt.Errorf("-o custom-columns: %s: %w", header, err)
		}
		p.columns = append(p.columns, customColumn{header, value})
	}
	return p, nil
}

// Print prints the row of an object that would change, or of which there is
// something to tell.
func (p *columnsPrinter) Print(c engine.Change) error {
	p.learn(&c)
	if !p.shown(&c) {
		return nil
	}
	text, err := json.Marshal(p.reported(&c))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Subject, err)
	}
	var change map[string]any
	if err := json.Unmarshal(text, &change); err != nil {
		return fmt.Errorf("%s: %w", c.Subject, err)
	}
	cells := make([]string, len(p.columns))
	for i, column := range p.columns {
		if cells[i], err = column.cell(change); err != nil {
			return fmt.Errorf("%s: column %s: %w", c.Subject, column.header, err)
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
	return line(strings.Join(parts, ",")), nil
}

// row writes a row, and before the first one the headers.
func (p *columnsPrinter) row(cells []string) error {
	if err := p.headers(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(p.rows, strings.Join(cells, "\t"))
	return err
}

func (p *columnsPrinter) headers() error {
	if p.begun {
		return nil
	}
	p.begun = true
	headers := make([]string, len(p.columns))
	for i, column := range p.columns {
		headers[i] = line(column.header)
	}
	return p.row(headers)
}

// Close prints what is left of the rows.
func (p *columnsPrinter) Close(engine.Summary) error {
	if err := p.headers(); err != nil {
		return err
	}
	return p.rows.Flush()
}
