package output

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

var resultFormats = []string{Summary, Name, JSON, YAML} //nolint:gochecknoglobals // an immutable table

// ResultFormats lists the formats of NewResults, for help and errors.
func ResultFormats() string { return strings.Join(resultFormats, ", ") }

// ResultPrinter shows what came of each object that was to be written.
type ResultPrinter interface {
	// Print shows one object.
	Print(apply.Result) error
	// Close ends the output with what came of all.
	Close() error
}

// NewResults returns the printer of the results of a run that writes. It fails for
// an unknown format, and for a query that cannot be used.
func NewResults(format string, o Options) (ResultPrinter, error) {
	if !slices.Contains(resultFormats, format) {
		return nil, &UnknownFormatError{Format: format, Allowed: resultFormats}
	}
	if err := o.checkQuery(format); err != nil {
		return nil, err
	}
	o.Masker = o.masker()
	switch format {
	case Name:
		return human.NewResultNames(o.results()), nil
	case JSON, YAML:
		if o.Query != "" {
			return newQueriedResults(&o, format == YAML)
		}
		return human.NewResultReport(o.results(), format == YAML), nil
	}
	return human.NewResultLines(o.results()), nil
}

// queriedResults prints what a query finds in the report of the results.
type queriedResults struct {
	*human.ResultReport
	query *structured.Query
	held  bytes.Buffer // the report as JSON
	out   io.Writer
}

func newQueriedResults(o *Options, asYAML bool) (*queriedResults, error) {
	query, err := structured.ParseQuery(o.Query, asYAML)
	if err != nil {
		return nil, err
	}
	p := &queriedResults{query: query, out: o.Out}
	inner := o.results()
	inner.Out = &p.held
	p.ResultReport = human.NewResultReport(inner, false)
	return p, nil
}

// Close prints what the query finds.
func (p *queriedResults) Close() error {
	if err := p.ResultReport.Close(); err != nil {
		return err
	}
	text, err := p.query.Find(p.held.Bytes())
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.out, text)
	return err
}
