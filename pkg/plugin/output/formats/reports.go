package formats

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// reportFormat is a format of --report.
type reportFormat struct {
	name string
	// writes, compares, converts and tests say that the format is also for such runs. The others describe the
	// state of objects, not what was done to them.
	writes, compares, converts, tests bool
	open                              func(output.Options) output.Format
}

var reportFormats = []reportFormat{ //nolint:gochecknoglobals // an immutable table
	{
		"junit", true, true, false, true,
		func(o output.Options) output.Format { return report.New(o, report.NewJUnit(o)) },
	},
	{
		"sarif", false, false, false, true,
		func(o output.Options) output.Format { return report.New(o, report.NewSARIF(o)) },
	},
	{"markdown", true, true, true, true, func(o output.Options) output.Format { return newMarkdown(o, 0) }},
	{"html", false, true, true, false, func(o output.Options) output.Format { return report.NewHTML(o) }},
	{
		githubReport, true, false, false, true,
		func(o output.Options) output.Format { return report.New(o, report.NewGitHub(o)) },
	},
	{"policyreport", false, false, false, false, func(o output.Options) output.Format {
		return report.New(o, report.NewPolicyReport(report.WGPolicyAPI(), o))
	}},
	{"openreports", false, false, false, false, func(o output.Options) output.Format {
		return report.New(o, report.NewPolicyReport(report.OpenReportsAPI(), o))
	}},
}

func newMarkdown(o output.Options, limit int) output.Format {
	if o.Writes {
		return report.New(o, report.NewMarkdownWrites(o, limit))
	}
	return report.NewMarkdown(o, limit)
}

// githubReport may go without a file: a runner reads commands on standard error too.
const githubReport = "github"

// ReportNames lists the formats of --report of a run with these options, for help and errors.
func ReportNames(o output.Options) string {
	var names []string
	for _, f := range reportFormats {
		if (f.writes || !o.Writes) && (f.compares || !o.Compares) && (f.converts || !o.Converts) &&
			(f.tests || !o.Tests) {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}

// findReport returns the format of a name, if it fits the options.
func findReport(name string, o output.Options) (*reportFormat, error) {
	i := slices.IndexFunc(reportFormats, func(f reportFormat) bool { return f.name == name })
	switch {
	case i < 0:
		return nil, fmt.Errorf("unknown format %q: use one of %s", name, ReportNames(o))
	case o.Writes && !reportFormats[i].writes:
		return nil, fmt.Errorf("%s says how objects are, as preview finds them, and not what was written: use one of %s", name, ReportNames(output.Options{Writes: true}))
	case o.Converts && !reportFormats[i].converts:
		return nil, fmt.Errorf("%s cannot show a conversion: use one of %s", name, ReportNames(output.Options{Converts: true}))
	case o.Tests && !reportFormats[i].tests:
		return nil, fmt.Errorf("%s cannot show tests: use one of %s", name,
			ReportNames(output.Options{Tests: true}))
	case o.Compares && !reportFormats[i].compares:
		return nil, fmt.Errorf("%s cannot show a comparison: use one of %s", name, ReportNames(output.Options{Compares: true}))
	}
	return &reportFormats[i], nil
}

// stdio is the file name that stands for standard output.
const stdio = "-"

// ReportOptions say where reports go, and what they contain.
type ReportOptions struct {
	output.Options // its Out is standard output
	ErrOut         io.Writer
	// Stored, if set, takes reports of the API in the cluster, one with each call of Write.
	Stored Store
	API    report.PolicyReportAPI
	// StdoutTaken says that -o uses standard output.
	StdoutTaken bool
}

// Store is a destination of reports that others see only when it is committed.
type Store interface {
	io.Writer
	Commit() error
	Discard() error
}

// Reports is the printer of the reports of a run. The zero value has no reports.
type Reports struct {
	reports []output.Printer
	files   []Store // of these
	instead bool
}

// reportFile is a report whose file appears when it is closed.
type reportFile struct {
	output.Printer
	file   Store // nil for a stream
	writes bool
	failed error // the first error of a run that writes
}

func (r *Reports) add(f output.Format, o output.Options, file Store) {
	r.reports = append(r.reports,
		&reportFile{Printer: output.NewPrinter(f, o.ShowSecrets), file: file, writes: o.Writes})
	if file != nil {
		r.files = append(r.files, file)
	}
}

// OpenReports begins the reports named as FORMAT=FILE. It refuses files that cannot be written, but creates
// none yet, and for a run that writes refuses formats that describe the state of objects.
func OpenReports(named []string, o ReportOptions) (*Reports, error) {
	o.Color, o.Query, o.Comparer = false, "", nil
	out := &Reports{}
	if len(named) > 0 || o.Stored != nil { // without, a closed standard output ends the process
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	seen := map[string]bool{}
	for _, text := range named {
		name, path, _ := strings.Cut(text, "=")
		if seen[path] && path != "" {
			return nil, fmt.Errorf("--report %s: %s is named twice", text, path)
		}
		seen[path] = true
		if path == stdio && o.StdoutTaken {
			return nil, fmt.Errorf("--report %s: -o prints to standard output: leave one of them out, or name a file", text)
		}
		if err := out.open(name, path, o); err != nil {
			return nil, fmt.Errorf("--report %s: %w", text, err)
		}
	}
	if o.Stored != nil {
		o.Out = o.Stored
		out.add(report.New(o.Options, report.NewPolicyReport(o.API, o.Options)), o.Options, o.Stored)
	}
	return out, nil
}

func (r *Reports) open(name, path string, o ReportOptions) error {
	var f Store
	switch {
	case path == stdio:
		r.instead = true
	case path == "" && name == githubReport:
		o.Out = o.ErrOut
	case path == "":
		return errors.New("use FORMAT=FILE")
	default:
		mode := file.Shared
		if o.ShowSecrets {
			mode = file.Private
		}
		created, err := file.New(path, mode)
		if err != nil {
			return err
		}
		f, o.Out = created, created
	}
	format, err := findReport(name, o.Options)
	if err != nil {
		return err
	}
	r.add(format.open(o.Options), o.Options, f)
	if name == githubReport {
		if summary := stepSummary(o.Options); summary != nil {
			r.add(summary, o.Options, nil)
		}
	}
	return nil
}

// Instead reports whether a report replaces the output of -o.
func (r *Reports) Instead() bool { return r.instead }

// Beside returns a printer of -o and of the reports. With reports, only the output of -o ends when nobody
// reads it any more, as with `| head`.
func (r *Reports) Beside(p output.Printer) output.Printer {
	switch {
	case r.instead:
		return r
	case len(r.reports) == 0:
		return p
	}
	return output.Tee(&unread{Printer: p}, r)
}

// unread is a printer that stops once its output is closed.
type unread struct {
	output.Printer
	closed bool
}

func (u *unread) unless(do func() error) error {
	if u.closed {
		return nil
	}
	err := do()
	if u.closed = errors.Is(err, syscall.EPIPE); u.closed {
		return nil
	}
	return err
}

// Print implements output.Printer.
func (u *unread) Print(e output.Event) error {
	return u.unless(func() error { return u.Printer.Print(e) })
}

// Flush implements output.Flusher.
func (u *unread) Flush() error { return u.unless(func() error { return output.Flush(u.Printer) }) }

// Close implements output.Printer.
func (u *unread) Close() error { return u.unless(u.Printer.Close) }

// Print adds an event to the reports. An error ends a run that writes nothing; in a run that writes, Close
// returns it.
func (r *Reports) Print(e output.Event) error { return output.Tee(r.reports...).Print(e) }

// Close writes the reports. Where it fails, there is no file, or that of the previous run.
func (r *Reports) Close() error { return output.Tee(r.reports...).Close() }

// Discard removes the incomplete reports of a run that broke off. It does nothing to reports that are
// closed.
func (r *Reports) Discard() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Discard())
	}
	return errors.Join(errs...)
}

// Print implements output.Printer.
func (f *reportFile) Print(e output.Event) error {
	if f.failed != nil {
		return nil
	}
	err := f.Printer.Print(e)
	if f.writes {
		f.failed, err = err, nil
	}
	return err
}

// Close implements output.Printer.
func (f *reportFile) Close() error {
	err := f.failed
	if err == nil {
		err = f.Printer.Close()
	}
	switch {
	case f.file == nil:
		return err
	case err != nil:
		return errors.Join(err, f.file.Discard())
	}
	return f.file.Commit()
}

// stepSummaryVariable names the file in which GitHub Actions collects the summaries of the steps of a job,
// each of at most stepSummaryBytes.
const (
	stepSummaryVariable = "GITHUB_STEP_SUMMARY"
	stepSummaryBytes    = 1 << 20
)

// stepSummary returns the format for the summary of the step; nil if no runner collects it, or it is full.
func stepSummary(o output.Options) output.Format {
	path, room := os.Getenv(stepSummaryVariable), stepSummaryBytes
	if info, err := os.Stat(path); err == nil {
		room -= int(min(info.Size(), stepSummaryBytes))
	}
	if o.Out = appender(path); path == "" || room < report.MinMarkdownBytes {
		return nil
	}
	return newMarkdown(o, room)
}

// appender is the path of a file to which other steps write as well.
type appender string

// Write appends b with one write.
func (path appender) Write(b []byte) (int, error) {
	f, err := os.OpenFile(string(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, file.Shared)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return n, errors.Join(err, f.Close())
}

var _ io.Writer = appender("")
