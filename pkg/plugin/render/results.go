package render

import (
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/results"
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

// NewResults returns the printer of the results of a run that writes.
func NewResults(format string, o Options) (ResultPrinter, error) {
	if !slices.Contains(resultFormats, format) {
		return nil, &UnknownFormatError{Format: format, Allowed: resultFormats}
	}
	o.Masker = o.masker()
	switch format {
	case Name:
		return results.NewNames(o.results()), nil
	case JSON, YAML:
		return results.NewReport(o.results(), format == YAML), nil
	}
	return results.NewLines(o.results()), nil
}
