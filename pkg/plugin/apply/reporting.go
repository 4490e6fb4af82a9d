package apply

import (
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// Printers print a run that writes.
type Printers struct {
	Shown   output.Printer // what -o prints
	Reports output.Printer // what --report writes
}

// Writing returns the printers of a run that writes to a cluster, and its executor, which reports to them.
func (f *WriteFlags) Writing(c *cobra.Command, w *factory.Factory,
	request engine.Request,
) (p Printers, x *write.Executor, err error) {
	options, m, format := w.WriteOptions(f.Output, request, f.Rehearsal()), f.Cluster, f.Output.Format
	chosen := &output.HintCollector{Namespace: options.Context.Namespace, Selectors: f.Objects.SelectorFlags()}
	if !f.IncludeManaged {
		chosen.Fix = preview.FixCommand(c, &f.Policies)
	}
	options.Hint = chosen.Chosen
	var reports *formats.Reports
	if m != nil {
		reports, p.Reports, m.row.Server = m.fleet.reports, m.reports(), w.Client.Info().Server
	} else if reports, err = w.Reports(f.Report, options, c.Flags().Changed("output")); err == nil {
		p.Reports = reports
	}
	switch {
	case err != nil:
	case m != nil && m.fleet.results != nil:
		p.Shown = onCluster{m.fleet.results, m, false}
	default:
		p.Shown, err = formats.NewResults(format, options, reports)
	}
	if err == nil && (m == nil || !m.shown) {
		p.Shown, err = formats.NewWrites(p.Shown, format, options, reports, w.Streams.ErrOut)
	}
	x = w.Executor(&f.Write, p.written)
	x.OnVerified = func() error { return output.Flush(p.Shown) }
	x.NotTried = func(r *write.Result) error { return p.Reports.Print(output.Written{Result: r}) }
	x.ShowDrift = factory.DriftPrinter(options, w.Streams.ErrOut)
	return p, x, err
}

// Print prints an event. The reports come first: they must have the writes even if the output fails.
func (p Printers) Print(e output.Event) error { return output.Tee(p.Reports, p.Shown).Print(e) }

// written prints the outcome of a task.
func (p Printers) written(r *write.Result) error { return p.Print(output.Written{Result: r}) }

// WriteReports adds the error that ended a run to its reports, unless their objects have it, writes the
// reports, and returns the exit code and error of the run. Reports that cannot be written make a run
// incomplete.
func WriteReports(r output.Printer, code int, err error) (int, error) {
	var problems []error
	for _, e := range engine.JoinedErrors(err) {
		var unwritable *write.UnwritableError
		if errors.As(e, &unwritable) {
			continue // its objects are in the reports: a pipeline would count it twice
		}
		problems = append(problems, e)
	}
	return preview.ExitAfterWriting(code, err, errors.Join(preview.PrintProblems(r, problems), r.Close()))
}

// NewJournal returns the function that begins the journal of a run, whose header has the fields that differ
// between runs: in the file of the flags, or in journal.Directory, where it removes old journals.
func NewJournal(w *factory.Factory, c *cobra.Command, args []string, f *flags.Write,
	h journal.Header,
) (func() (*journal.Writer, error), error) {
	h.ID, h.Command, h.Arguments, h.Started = journal.NewID(), c.Name(), typed(c, args), time.Now()
	h.FieldManager, h.Secrets = f.FieldManager, f.JournalSecrets
	path := f.Journal
	if path == "" {
		dir, err := journal.Directory()
		if err != nil {
			return nil, err
		}
		name := journal.FileName
		if f.Watches {
			name = journal.WatchFileName
		}
		path = filepath.Join(dir, name(h.Started, w.Client.Info().Context, h.ID))
	}
	return func() (*journal.Writer, error) {
		j, err := journal.Create(path, h)
		if err == nil && f.Journal == "" {
			if unpruned := f.Prune(c.Flags(), filepath.Dir(path), path); unpruned != nil {
				w.Warn(unpruned)
			}
		}
		return j, err
	}, nil
}

// typed returns the arguments of a command as typed, without credentials.
func typed(c *cobra.Command, args []string) []string {
	return append(slices.Clone(args), flags.Typed(c.Flags())...)
}
