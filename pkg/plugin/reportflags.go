package plugin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/github"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/html"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/junit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/markdown"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/policyreport"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/sarif"
)

// ReportFlags name the files for programs and reviewers that a run writes beside
// what it prints.
type ReportFlags struct{ Reports []string } // FORMAT=FILE

// reportFormat makes the printer of one format.
type reportFormat struct {
	name string
	make func(render.Options) (render.Printer, error)
}

// reportFormats are the formats of --report.
func reportFormats() []reportFormat {
	return []reportFormat{
		{"junit", func(o render.Options) (render.Printer, error) { return junit.New(o), nil }},
		{"sarif", func(o render.Options) (render.Printer, error) { return sarif.New(o), nil }},
		{"markdown", func(o render.Options) (render.Printer, error) { return markdown.New(o, markdown.MaxBytes) }},
		{"html", func(o render.Options) (render.Printer, error) { return html.New(o), nil }},
		{githubReport, newGitHub},
		{"policyreport", func(o render.Options) (render.Printer, error) {
			return policyreport.New(policyreport.WGPolicy(), o), nil
		}},
		{"openreports", func(o render.Options) (render.Printer, error) {
			return policyreport.New(policyreport.OpenReports(), o), nil
		}},
	}
}

// githubReport may go without a file: a runner reads commands from standard error
// as from standard output.
const githubReport = "github"

// ReportFormats lists the formats of --report, for help and errors.
func ReportFormats() string {
	var names []string
	for _, f := range reportFormats() {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// AddFlags registers the flag.
func (f *ReportFlags) AddFlags(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.Reports, "report", nil, "Also write a report, as FORMAT=FILE: one of "+ReportFormats()+". May be given more than once. The FILE - is standard output, in the place of what -o prints; github without a FILE goes to standard error.")
}

// stdio is the file that stands for standard output.
const stdio = "-"

// reports are those of a run.
type reports struct {
	printers []render.Printer
	files    []*file.File
	// instead tells that one of them takes the place of what -o prints.
	instead bool
}

// reports opens what the flag names. It refuses what cannot be written before
// anything is done, and creates no file yet.
func (f *ReportFlags) reports(c *cobra.Command, w *wiring, o render.Options) (*reports, error) {
	out := &reports{}
	seen := map[string]bool{}
	for _, text := range f.Reports {
		name, path, _ := strings.Cut(text, "=")
		if seen[path] && path != "" {
			return nil, fmt.Errorf("--report %s: %s is named twice", text, path)
		}
		seen[path] = true
		if path == stdio && c.Flags().Changed("output") {
			return nil, fmt.Errorf("--report %s: -o prints to standard output: leave one of them out, or name a file", text)
		}
		if err := out.add(name, path, w, o); err != nil {
			return nil, fmt.Errorf("--report %s: %w", text, err)
		}
	}
	return out, nil
}

func (r *reports) add(name, path string, w *wiring, o render.Options) error {
	format, err := reportFormatOf(name)
	if err != nil {
		return err
	}
	var ended *file.File
	switch {
	case path == stdio:
		r.instead = true
	case path == "" && name == githubReport:
		o.Out = w.streams.ErrOut
	case path == "":
		return errors.New("use FORMAT=FILE")
	default:
		mode := file.Shared
		if o.ShowSecrets {
			mode = file.Private
		}
		if ended, err = file.New(path, mode); err != nil {
			return err
		}
		r.files = append(r.files, ended)
		o.Out = ended
	}
	printer, err := format.make(o)
	if err != nil {
		return err
	}
	r.printers = append(r.printers, &reportPrinter{Printer: printer, file: ended})
	return nil
}

func reportFormatOf(name string) (*reportFormat, error) {
	for _, f := range reportFormats() {
		if f.name == name {
			return &f, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q: use one of %s", name, ReportFormats())
}

// beside returns a printer of what -o prints and of the reports.
func (r *reports) beside(p render.Printer) render.Printer {
	all := r.printers
	if !r.instead {
		all = append([]render.Printer{p}, all...)
	}
	return render.Tee(all...)
}

// trouble tells the reports what went wrong beside the objects.
func (r *reports) trouble(problems []error) error {
	for _, p := range r.printers {
		for _, problem := range problems {
			if t, ok := p.(*reportPrinter).Printer.(report.Troubled); ok {
				if err := t.Trouble(problem); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// end removes what a run that broke off has left behind; its reports are not
// there, or are those of the run before.
func (r *reports) end() error {
	var errs []error
	for _, p := range r.printers {
		if e, ok := p.(*reportPrinter).Printer.(interface{ End() error }); ok {
			errs = append(errs, e.End())
		}
	}
	for _, f := range r.files {
		errs = append(errs, f.Discard())
	}
	return errors.Join(errs...)
}

// reportPrinter is a report whose file is there when it is closed.
type reportPrinter struct {
	render.Printer
	file *file.File // nil for a stream
}

// Close ends the report, and gives the file its name if all went well.
func (p *reportPrinter) Close(s engine.Summary) error {
	if err := p.Printer.Close(s); err != nil || p.file == nil {
		return err
	}
	return p.file.Commit()
}

// stepSummaryVariable names the file in which GitHub Actions collects what the
// steps of a job have to say, and stepSummaryBytes is what it takes of one step.
const (
	stepSummaryVariable = "GITHUB_STEP_SUMMARY"
	stepSummaryBytes    = 1 << 20
)

func newGitHub(o render.Options) (render.Printer, error) {
	path := os.Getenv(stepSummaryVariable)
	if path == "" {
		return github.New(o, nil), nil
	}
	room := stepSummaryBytes
	if info, err := os.Stat(path); err == nil {
		room -= int(min(info.Size(), stepSummaryBytes))
	}
	if room < markdown.MinBytes {
		return github.New(o, nil), nil
	}
	inner := o
	inner.Out = appender(path)
	summary, err := markdown.New(inner, room)
	return github.New(o, summary), err
}

// appender is a file to which others have written before, and will write.
type appender string

// Write appends at once.
func (path appender) Write(b []byte) (int, error) {
	f, err := os.OpenFile(string(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, file.Shared)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return n, errors.Join(err, f.Close())
}

var _ io.Writer = appender("")
