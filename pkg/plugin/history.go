package plugin

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
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
	Context   string   // empty: of all contexts
	Journals  []string // of these runs only; nil for all
	Printer   HistoryPrinter
	ErrOut    io.Writer
}

// NewHistoryCommand is `history`: the runs that wrote, and what to do with them.
func NewHistoryCommand(config *genericclioptions.ConfigFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := HistoryFlags{Output: formats.Table, Config: config}
	c := &cobra.Command{
		Use:   "history [RUN ...]",
		Short: "List the runs that wrote to a cluster, from their journals",
		Long: templates.LongDesc(`
			List the runs that wrote to the cluster of the current context, the latest first, or
			those that are named by their ID, their journal or "latest", from the journals in the state directory of the user ($XDG_STATE_HOME/kubectl-mutate or
			~/.local/state/kubectl-mutate). Journals that were kept elsewhere are not listed.

			PLANNED counts the objects that were to be written, and APPLIED, UNCHANGED (found to be
			as wanted, or gone), FAILED, IN DOUBT and LEFT what became of them. An interrupted run leaves objects that were not written, and
			may leave some of which it is not known whether the server stored the write;
			apply-existing --resume continues it. UNDONE counts the objects of which undo has
			reverted something.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What was written to this cluster?
			%[1]s history

			# How did the run 0a1b2c3d end?
			%[1]s history 0a1b2c3d

			# Undo the latest run that can be undone
			%[1]s undo latest`, name)),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args, streams)
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

// ToOptions returns the options for the flags.
func (f *HistoryFlags) ToOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*HistoryOptions, error) {
	if !slices.Contains(historyFormats(), f.Output) {
		return nil, &formats.UnknownFormatError{Format: f.Output, Allowed: historyFormats()}
	}
	dir, err := journal.Directory()
	if err != nil {
		return nil, err
	}
	root := c.Root().CommandPath()
	o := &HistoryOptions{
		Directory: dir, ErrOut: redact.NewWriter(streams.ErrOut),
		Printer: HistoryPrinter{
			Out: streams.Out, Format: f.Output, Where: filepath.Clean(dir),
			Resume: root + " " + applyExisting, Undo: root + " undo",
		},
	}
	here := currentContext(f.Config)
	for _, name := range args {
		path, err := journal.Find(name, here, func(*journal.Run) bool { return true })
		if err != nil {
			return nil, err
		}
		if filepath.Dir(path) != filepath.Clean(dir) {
			return nil, fmt.Errorf("journal %s is not in %s: what later runs undid of it is not known", path, dir)
		}
		o.Journals = append(o.Journals, path)
	}
	if !f.All && len(args) == 0 {
		o.Context = here
	}
	if o.Context != "" {
		o.Printer.Where = "this context; --all lists those of others"
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

// Run lists the runs, and returns the exit code. A journal that cannot be read is
// reported, and leaves the list incomplete.
func (o *HistoryOptions) Run() (int, error) {
	code := ExitOK
	runs, err := journal.Runs(o.Directory, o.Context, func(file string, broken error) {
		if o.lists(file) {
			fmt.Fprintf(o.ErrOut, "error: %v\n", broken)
			code = ExitIncomplete
		}
	})
	if err != nil {
		return ExitNothing, err
	}
	runs = slices.DeleteFunc(runs, func(r journal.Run) bool { return !o.lists(r.Journal) })
	return code, o.Printer.Print(runs)
}

// lists reports whether the run of a journal is to be listed.
func (o *HistoryOptions) lists(file string) bool {
	return o.Journals == nil || slices.Contains(o.Journals, file)
}
