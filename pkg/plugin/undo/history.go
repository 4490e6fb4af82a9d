package undo

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// HistoryFlags has the flags of history.
type HistoryFlags struct {
	Output string
	All    bool
	Config *genericclioptions.ConfigFlags
}

// NewHistoryCommand is `history`: the runs that wrote, and the commands to resume or undo them.
func NewHistoryCommand(config *genericclioptions.ConfigFlags, name string,
	streams genericiooptions.IOStreams,
) *cobra.Command {
	f := HistoryFlags{Output: formats.Table, Config: config}
	c := &cobra.Command{
		Use:   "history [RUN | JOURNAL | DIRECTORY ...]",
		Short: "List the runs that wrote to a cluster, from their journals",
		Long: templates.LongDesc(`
			List the runs that wrote to the cluster of the current context, the latest first, or
			those that are named by their ID, their journal, a directory of journals or "latest", from the
			journals in the state directory of the user ($XDG_STATE_HOME/kubectl-mutate or
			~/.local/state/kubectl-mutate). Journals that were kept elsewhere are listed when they are named.

			PLANNED counts the objects that were to be written, and APPLIED, UNCHANGED (found to be
			as wanted, or gone), FAILED, IN DOUBT and LEFT what became of them. An interrupted run
			leaves objects that were not written, and may leave some of which it is not known
			whether the server stored the write; apply-existing --resume continues it. UNDONE counts the
			objects of which undo has reverted something.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What was written to this cluster?
			%[1]s history

			# How did the run 0a1b2c3d end?
			%[1]s history 0a1b2c3d

			# Undo the latest run that can be undone
			%[1]s undo latest`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			return process.Exit(f.run(c, args, streams))
		},
	}
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of table, json, yaml, name.")
	c.Flags().BoolVarP(&f.All, "all", "A", false, "List the runs on all clusters.")
	return c
}

// run lists the runs, and returns the exit code. An unreadable journal is reported, and makes the list
// incomplete.
func (f *HistoryFlags) run(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (int, error) {
	if !slices.Contains(historyFormats(), f.Output) {
		return process.ExitNothing, &formats.UnknownFormatError{Format: f.Output, Allowed: historyFormats()}
	}
	dir, err := journal.Directory()
	if err != nil {
		return process.ExitNothing, err
	}
	here := flags.CurrentContext(f.Config)
	var journals []string // of the named runs
	for _, name := range args {
		path, err := journal.Find(name, here, func(*journal.Run) bool { return true })
		if err != nil {
			return process.ExitNothing, err
		}
		if path, err = filepath.Abs(path); err != nil {
			return process.ExitNothing, err
		}
		named := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if named, err = journal.Files(path); err == nil && len(named) == 0 {
				err = fmt.Errorf("%s has no journals, which are files *%s", path, journal.Extension)
			}
			if err != nil {
				return process.ExitNothing, err
			}
		}
		journals = append(journals, named...)
	}
	root := c.Root().CommandPath()
	printer := HistoryPrinter{
		Out: streams.Out, Format: f.Output, Where: filepath.Clean(dir),
		Resume: root + " " + preview.ApplyExisting, Undo: root + " undo",
	}
	if f.All || len(args) > 0 {
		here = "" // all contexts
	}
	if here != "" {
		printer.Where = "this context; --all lists those of others"
	}
	code := process.ExitOK
	lists := func(file string) bool { return journals == nil || slices.Contains(journals, file) }
	runs, err := journal.Runs(dir, here, func(file string, broken error) {
		if lists(file) {
			fmt.Fprintf(redact.NewWriter(streams.ErrOut), "error: %v\n", broken)
			code = process.ExitIncomplete
		}
	}, journals...)
	if err != nil {
		return process.ExitNothing, err
	}
	return code, printer.Print(slices.DeleteFunc(runs, func(r journal.Run) bool { return !lists(r.Journal) }))
}

// historyFormats lists the formats of history.
func historyFormats() []string {
	return []string{formats.Table, formats.JSON, formats.YAML, formats.Name}
}

// HistoryPrinter prints runs.
type HistoryPrinter struct {
	Out    io.Writer
	Format string // table, json, yaml or name
	Where  string // the runs were looked for, if there are none
	// Resume and Undo are the commands for a run, without its name.
	Resume, Undo string
}

// Print prints the runs.
func (p *HistoryPrinter) Print(runs []journal.Run) error {
	switch p.Format {
	case formats.Name:
		names := make([]string, len(runs))
		for i := range runs {
			names[i] = runs[i].Journal
		}
		return structured.WriteNames(p.Out, names...)
	case formats.JSON, formats.YAML:
		return structured.WriteList(p.Out, p.Format == formats.YAML, "RunList", runs)
	}
	var b strings.Builder
	p.table(&b, runs)
	_, err := io.WriteString(redact.NewWriter(p.Out), b.String())
	return err
}

// table writes the runs, and the next commands below.
func (p *HistoryPrinter) table(b *strings.Builder, runs []journal.Run) {
	if len(runs) == 0 {
		fmt.Fprintf(b, "No runs in %s.\n", p.Where)
		return
	}
	rows := [][]string{{
		"ID", "STARTED", "CONTEXT", "COMMAND", "PLANNED", "APPLIED", "UNCHANGED", "FAILED",
		"IN DOUBT", "LEFT", "UNDONE",
	}}
	for i := range runs {
		r := &runs[i]
		command := r.Command
		if r.Undoes != "" {
			command += " of " + r.Undoes
		}
		row := []string{
			wording.Cell(r.ID), r.Started.Local().Format(time.DateTime), wording.Cell(r.Context),
			wording.Cell(command),
		}
		for _, n := range []int{r.Planned, r.Applied, r.Unchanged, r.Failed, r.InDoubt, r.Left, r.Undone} {
			row = append(row, strconv.Itoa(n))
		}
		rows = append(rows, row)
	}
	if unchanged := slices.Index(rows[0], "UNCHANGED"); !slices.ContainsFunc(runs, func(r journal.Run) bool {
		return r.Unchanged > 0
	}) {
		for i := range rows {
			rows[i] = slices.Delete(rows[i], unchanged, unchanged+1)
		}
	}
	b.WriteString(wording.Table(rows))
	p.next(b, runs)
}

// next writes how to resume the latest interrupted run, and how to undo the latest one.
func (p *HistoryPrinter) next(b *strings.Builder, runs []journal.Run) {
	var lines strings.Builder
	if i := slices.IndexFunc(runs, func(r journal.Run) bool { return r.Resumable() }); i >= 0 {
		fmt.Fprintf(&lines, "To continue with %s: %s --resume %s\n", wording.Cell(runs[i].ID), p.Resume,
			wording.ShellQuote(runs[i].Name()))
	}
	if i := slices.IndexFunc(runs, func(r journal.Run) bool { return r.Undoable() }); i >= 0 {
		fmt.Fprintf(&lines, "To take back %s: %s %s\n", wording.Cell(runs[i].ID), p.Undo,
			wording.ShellQuote(runs[i].Name()))
	}
	if lines.Len() > 0 {
		b.WriteString("\n" + lines.String())
	}
}
