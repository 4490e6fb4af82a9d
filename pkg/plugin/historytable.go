package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// historyFormats lists the formats of history.
func historyFormats() []string {
	return []string{formats.Table, formats.JSON, formats.YAML, formats.Name}
}

// HistoryPrinter prints runs.
type HistoryPrinter struct {
	Out    io.Writer
	Format string // table, json, yaml or name
	Where  string // the runs were looked for, if there are none
	// Resume and Undo are the commands that go on with a run, and take one back, less
	// its name.
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
	if err := p.table(&b, runs); err != nil {
		return err
	}
	_, err := io.WriteString(redact.NewWriter(p.Out), b.String())
	return err
}

// table writes the runs, and below them what to do next.
func (p *HistoryPrinter) table(b *strings.Builder, runs []journal.Run) error {
	if len(runs) == 0 {
		fmt.Fprintf(b, "No runs in %s.\n", p.Where)
		return nil
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	unchanged := slices.ContainsFunc(runs, func(r journal.Run) bool { return r.Unchanged > 0 })
	row := func(first string, unchangedCell any, counts ...any) {
		if unchanged {
			counts = slices.Insert(counts, 2, unchangedCell)
		}
		fmt.Fprint(w, first)
		for _, c := range counts {
			fmt.Fprint(w, "\t", c)
		}
	}
	row("ID\tSTARTED\tCONTEXT\tCOMMAND", "UNCHANGED", "PLANNED", "APPLIED", "FAILED", "IN DOUBT", "LEFT", "UNDONE")
	for i := range runs {
		r := &runs[i]
		row(fmt.Sprintf("\n%s\t%s\t%s\t%s", wording.Cell(r.ID), r.Started.Local().Format(time.DateTime), wording.Cell(r.Context), wording.Cell(historyCommand(r))),
			r.Unchanged, r.Planned, r.Applied, r.Failed, r.InDoubt, r.Left, r.Undone)
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	p.next(b, runs)
	return nil
}

// historyCommand returns the command of a run, and what it undid.
func historyCommand(r *journal.Run) string {
	if r.Undoes != "" {
		return r.Command + " of " + r.Undoes
	}
	return r.Command
}

// next writes how to resume the latest interrupted run, and how to undo the latest one.
func (p *HistoryPrinter) next(b *strings.Builder, runs []journal.Run) {
	var lines strings.Builder
	if i := slices.IndexFunc(runs, func(r journal.Run) bool { return r.Resumable() }); i >= 0 {
		fmt.Fprintf(&lines, "To continue with %s: %s --resume %s\n", wording.Cell(runs[i].ID), p.Resume, wording.ShellQuote(runs[i].Name()))
	}
	if i := slices.IndexFunc(runs, func(r journal.Run) bool { return r.Undoable() }); i >= 0 {
		fmt.Fprintf(&lines, "To take back %s: %s %s\n", wording.Cell(runs[i].ID), p.Undo, wording.ShellQuote(runs[i].Name()))
	}
	if lines.Len() > 0 {
		b.WriteString("\n" + lines.String())
	}
}
