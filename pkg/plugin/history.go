package plugin

import (
	"fmt"
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
			return exit(f.run(c, args, streams))
		},
	}
	c.Flags().StringVarP(&f.Output, "output", "o", f.Output, "Output format: one of table, json, yaml, name.")
	c.Flags().BoolVarP(&f.All, "all", "A", false, "List the runs on all clusters.")
	return c
}

// run lists the runs, and returns the exit code. A journal that cannot be read is
// reported, and leaves the list incomplete.
func (f *HistoryFlags) run(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (int, error) {
	if !slices.Contains(historyFormats(), f.Output) {
		return ExitNothing, &formats.UnknownFormatError{Format: f.Output, Allowed: historyFormats()}
	}
	dir, err := journal.Directory()
	if err != nil {
		return ExitNothing, err
	}
	here := currentContext(f.Config)
	var journals []string // of the runs that are named
	for _, name := range args {
		path, err := journal.Find(name, here, func(*journal.Run) bool { return true })
		if err == nil && filepath.Dir(path) != filepath.Clean(dir) {
			err = fmt.Errorf("journal %s is not in %s: what later runs undid of it is not known", path, dir)
		}
		if err != nil {
			return ExitNothing, err
		}
		journals = append(journals, path)
	}
	root := c.Root().CommandPath()
	printer := HistoryPrinter{Out: streams.Out, Format: f.Output, Where: filepath.Clean(dir), Resume: root + " " + applyExisting, Undo: root + " undo"}
	if f.All || len(args) > 0 {
		here = "" // all contexts
	}
	if here != "" {
		printer.Where = "this context; --all lists those of others"
	}
	code := ExitOK
	lists := func(file string) bool { return journals == nil || slices.Contains(journals, file) }
	runs, err := journal.Runs(dir, here, func(file string, broken error) {
		if lists(file) {
			fmt.Fprintf(redact.NewWriter(streams.ErrOut), "error: %v\n", broken)
			code = ExitIncomplete
		}
	})
	if err != nil {
		return ExitNothing, err
	}
	return code, printer.Print(slices.DeleteFunc(runs, func(r journal.Run) bool { return !lists(r.Journal) }))
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
