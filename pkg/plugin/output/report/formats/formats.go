package formats

import (
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/html"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/junit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/markdown"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/policyreport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/sarif"
)

// format makes the printer of one format.
type format struct {
	name string
	make func(output.Options) (output.Printer, error)
	// results makes the report of a run that writes; nil where the format describes
	// the state of objects, and not what was done to them.
	results func(output.Options) report.Results
}

// formats are the formats of --report.
func formats() []format {
	return []format{
		{
			"junit",
			func(o output.Options) (output.Printer, error) { return junit.New(o), nil },
			func(o output.Options) report.Results { return junit.New(o) },
		},
		{"sarif", func(o output.Options) (output.Printer, error) { return sarif.New(o), nil }, nil},
		{
			"markdown",
			func(o output.Options) (output.Printer, error) { return markdown.New(o, markdown.MaxBytes) },
			func(o output.Options) report.Results { return markdown.NewResults(o, markdown.MaxBytes) },
		},
		{"html", func(o output.Options) (output.Printer, error) { return html.New(o), nil }, nil},
		{githubReport, newGitHub, newGitHubResults},
		{"policyreport", func(o output.Options) (output.Printer, error) {
			return policyreport.New(policyreport.WGPolicy(), o), nil
		}, nil},
		{"openreports", func(o output.Options) (output.Printer, error) {
			return policyreport.New(policyreport.OpenReports(), o), nil
		}, nil},
	}
}

// githubReport may go without a file: a runner reads commands from standard error
// as from standard output.
const githubReport = "github"

// Names lists the formats of --report, for help and errors.
func Names() string { return namesOf(func(format) bool { return true }) }

// ResultNames lists those for a run that writes.
func ResultNames() string { return namesOf(func(f format) bool { return f.results != nil }) }

func namesOf(wanted func(format) bool) string {
	var names []string
	for _, f := range formats() {
		if wanted(f) {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}

// formatOf finds a format; the names are those that can be used.
func formatOf(name, names string) (*format, error) {
	for _, f := range formats() {
		if f.name == name {
			return &f, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q: use one of %s", name, names)
}
