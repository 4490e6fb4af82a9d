package plugin

import (
	"cmp"
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
	// the name of its journal.
	Resume, Undo string
}

// Print prints the runs.
func (p *HistoryPrinter) Print(runs []journal.Run) error {
	switch p.Format {
	case formats.Name:
		for _, r := range runs {
			fmt.Fprintln(p.Out, r.Journal)
		}
		return nil
	case formats.JSON, formats.YAML:
		return structured.WriteList(p.Out, p.Format == formats.YAML, "RunList", runs)
	}
	return p.table(runs)
}

func (p *HistoryPrinter) table(runs []journal.Run) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintf(p.Out, "No runs in %s.\n", p.Where)
		return err
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ID\tSTARTED\tCONTEXT\tCOMMAND\tPLANNED\tAPPLIED\tFAILED\tIN DOUBT\tLEFT\tUNDONE")
	for _, r := range runs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", historyCell(r.ID), r.Started.Local().Format(time.DateTime),
			historyCell(r.Context), historyCell(historyCommand(&r)), r.Planned, r.Applied, r.Failed, r.InDoubt, r.Left, r.Undone)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return p.next(runs)
}

// historyCommand returns the command of a run, and what it undid.
func historyCommand(r *journal.Run) string {
	if r.Undoes != "" {
		return r.Command + " of " + r.Undoes
	}
	return r.Command
}

// historyCell makes a text from a file fit into a table.
func historyCell(text string) string {
	return strings.Join(strings.Fields(redact.EscapeLines(cmp.Or(text, "-"))), " ")
}

// next prints how to resume the latest interrupted run, and how to undo the
// latest one.
func (p *HistoryPrinter) next(runs []journal.Run) error {
	var b strings.Builder
	if i := slices.IndexFunc(runs, func(r journal.Run) bool { return r.Undoes == "" && r.InDoubt+r.Left > 0 }); i >= 0 {
		fmt.Fprintf(&b, "To continue with %s: %s --resume %s\n", historyCell(runs[i].ID), p.Resume, wording.ShellQuote(runs[i].Journal))
	}
	if i := slices.IndexFunc(runs, func(r journal.Run) bool { return r.Undoes == "" && r.Applied+r.InDoubt > r.Undone }); i >= 0 {
		fmt.Fprintf(&b, "To take back %s: %s %s\n", historyCell(runs[i].ID), p.Undo, wording.ShellQuote(runs[i].Journal))
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprint(p.Out, "\n"+redact.EscapeLines(b.String()))
	return err
}
