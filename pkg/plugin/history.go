package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
)

// HistoryFlags are what a user types after history.
type HistoryFlags struct {
	Output string
	All    bool
	Config *genericclioptions.ConfigFlags
}

// HistoryOptions are what history needs.
type HistoryOptions struct {
	Directory string
	Context   string // empty: of all contexts
	Output    string
	Command   string // by which the program is called
	Out       io.Writer
	ErrOut    io.Writer
}

// The formats of history.
const (
	historyTable = "table"
	historyName  = "name"
)

// NewHistoryCommand is `history`: the runs that wrote, and what to do with them.
func NewHistoryCommand(config *genericclioptions.ConfigFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := HistoryFlags{Output: historyTable, Config: config}
	c := &cobra.Command{
		Use:   "history",
		Short: "List the runs that wrote to a cluster, from their journals",
		Long: templates.LongDesc(`
			List the runs that wrote to the cluster of the current context, the latest first, from
			the journals in the state directory of the user ($XDG_STATE_HOME/kubectl-mutate or
			~/.local/state/kubectl-mutate). Journals that were kept elsewhere are not listed.

			PLANNED counts the objects that were to be written, and APPLIED, FAILED, IN DOUBT and
			LEFT what came of them. A run that was cut off leaves objects behind, and may leave
			some of which it is not known whether the server stored the write; apply-existing
			--resume goes on with it. UNDONE counts the objects of which undo has taken something
			back.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What was written to this cluster?
			%[1]s history

			# Take back the latest run
			%[1]s undo "$(%[1]s history -o name | head -n 1)"`, name)),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := f.ToOptions(c, streams)
			if err != nil {
				return err
			}
			return exit(o.Run())
		},
	}
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of table, json, yaml, name.")
	c.Flags().BoolVarP(&f.All, "all", "A", false, "List the runs on all clusters.")
	return c
}

// ToOptions wires what was typed.
func (f *HistoryFlags) ToOptions(c *cobra.Command, streams genericiooptions.IOStreams) (*HistoryOptions, error) {
	switch f.Output {
	case historyTable, render.JSON, render.YAML, historyName:
	default:
		return nil, &render.UnknownFormatError{Format: f.Output, Allowed: []string{historyTable, render.JSON, render.YAML, historyName}}
	}
	dir, err := journal.Directory()
	if err != nil {
		return nil, err
	}
	o := &HistoryOptions{
		Directory: dir, Output: f.Output, Command: c.Root().CommandPath(),
		Out: streams.Out, ErrOut: notices{streams.ErrOut, nil},
	}
	if !f.All {
		o.Context = currentContext(f.Config)
	}
	return o, nil
}

// currentContext is the kubeconfig's, or the one that --context names; empty where
// there is none.
func currentContext(config *genericclioptions.ConfigFlags) string {
	if config.Context != nil && *config.Context != "" {
		return *config.Context
	}
	raw, err := config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "" // history needs no kubeconfig
	}
	return raw.CurrentContext
}

// journaledRun is one journal at a glance.
type journaledRun struct {
	ID        string    `json:"id"`
	Started   time.Time `json:"started"`
	Context   string    `json:"context,omitempty"`
	Server    string    `json:"server,omitempty"`
	Command   string    `json:"command"`
	Arguments []string  `json:"arguments,omitempty"`
	Planned   int       `json:"planned"`
	Applied   int       `json:"applied"` // or found to be as wanted
	Failed    int       `json:"failed"`
	InDoubt   int       `json:"inDoubt"`
	Left      int       `json:"left"`
	// Complete tells that the run came to its end.
	Complete bool `json:"complete"`
	// Undoes is the run whose writes this one took back.
	Undoes string `json:"undoes,omitempty"`
	// Undone counts the objects of this run that later ones took back.
	Undone  int    `json:"undone"`
	Journal string `json:"journal"`
}

// Run lists the runs, and returns the exit code: a journal that cannot be read is
// told, and the list is then incomplete.
func (o *HistoryOptions) Run() (int, error) {
	files, err := journal.Files(o.Directory)
	if err != nil {
		return ExitNothing, err
	}
	code := ExitOK
	var runs []journaledRun
	for _, file := range files {
		j, err := journal.Glance(file)
		if err != nil {
			fmt.Fprintf(o.ErrOut, "error: %v\n", err)
			code = ExitIncomplete
			continue
		}
		runs = append(runs, runOf(j))
	}
	countUndone(runs)
	if o.Context != "" {
		runs = slices.DeleteFunc(runs, func(r journaledRun) bool { return r.Context != o.Context })
	}
	slices.SortStableFunc(runs, func(a, b journaledRun) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Journal, b.Journal))
	})
	return code, o.print(runs)
}

func runOf(j *journal.Journal) journaledRun {
	h := &j.Header
	r := journaledRun{
		ID: h.ID, Started: h.Started, Context: h.Run.Cluster.Context, Server: h.Run.Cluster.Server,
		Command: h.Command, Arguments: h.Arguments, Undoes: h.Undoes, Complete: j.End != nil, Journal: j.Path,
	}
	n := j.Count()
	r.Planned, r.Applied, r.Failed = len(j.Entries), n[journal.Done], n[journal.Failed]
	r.InDoubt, r.Left = n[journal.InDoubt], n[journal.Planned]+n[journal.Partial]
	return r
}

// countUndone gives each run what others took back of it.
func countUndone(runs []journaledRun) {
	for _, r := range runs {
		i := slices.IndexFunc(runs, func(of journaledRun) bool { return r.Undoes != "" && of.ID == r.Undoes })
		if i >= 0 {
			runs[i].Undone += r.Applied
		}
	}
}

func (o *HistoryOptions) print(runs []journaledRun) error {
	switch o.Output {
	case historyName:
		for _, r := range runs {
			fmt.Fprintln(o.Out, r.Journal)
		}
		return nil
	case render.JSON, render.YAML:
		return render.List(o.Out, o.Output, "RunList", runs)
	}
	return o.table(runs)
}

func (o *HistoryOptions) table(runs []journaledRun) error {
	if len(runs) == 0 {
		in := "this context; --all lists those of others"
		if o.Context == "" {
			in = filepath.Clean(o.Directory)
		}
		_, err := fmt.Fprintf(o.Out, "No runs in %s.\n", in)
		return err
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ID\tSTARTED\tCONTEXT\tCOMMAND\tPLANNED\tAPPLIED\tFAILED\tIN DOUBT\tLEFT\tUNDONE")
	for _, r := range runs {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", cell(r.ID), r.Started.Local().Format(time.DateTime),
			cell(r.Context), cell(r.command()), r.Planned, r.Applied, r.Failed, r.InDoubt, r.Left, r.Undone)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return o.next(runs)
}

// command says what the run was for.
func (r *journaledRun) command() string {
	if r.Undoes != "" {
		return r.Command + " of " + r.Undoes
	}
	return r.Command
}

// cell makes a text from a file fit into a table.
func cell(text string) string {
	return strings.Join(strings.Fields(render.Harmless(cmp.Or(text, "-"))), " ")
}

// next tells how to go on with the latest run that was cut off, and how to take
// back the latest one.
func (o *HistoryOptions) next(runs []journaledRun) error {
	var b strings.Builder
	if i := slices.IndexFunc(runs, func(r journaledRun) bool { return r.Undoes == "" && r.InDoubt+r.Left > 0 }); i >= 0 {
		fmt.Fprintf(&b, "To go on with %s: %s %s --resume %s\n", cell(runs[i].ID), o.Command, applyExisting, quote(runs[i].Journal))
	}
	if i := slices.IndexFunc(runs, func(r journaledRun) bool { return r.Undoes == "" && r.Applied+r.InDoubt > r.Undone }); i >= 0 {
		fmt.Fprintf(&b, "To take back %s: %s undo %s\n", cell(runs[i].ID), o.Command, quote(runs[i].Journal))
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprint(o.Out, "\n"+render.Harmless(b.String()))
	return err
}

// findJournal is the file that a user means by a path, or by the ID that history
// shows.
func findJournal(text string) (string, error) {
	if _, err := os.Stat(text); err == nil || !errors.Is(err, os.ErrNotExist) || strings.ContainsAny(text, `/\.`) {
		return text, nil // what is wrong with it shows when it is read
	}
	dir, err := journal.Directory()
	if err != nil {
		return "", err
	}
	files, err := journal.Files(dir)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "-"+text+journal.Extension) {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no journal %q: name a file, or an ID of those that `history` lists", text)
}
