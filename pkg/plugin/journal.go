package plugin

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// newJournal returns the function that begins the journal of a run, which may undo another one.
func newJournal(w *factory.Factory, c *cobra.Command, args []string, run plan.Run, f *flags.Write, undoes string) (func() (*journal.Writer, error), error) {
	h := journal.Header{
		ID: journal.NewID(), Command: c.Name(), Arguments: typed(c, args), Started: time.Now(), FieldManager: f.FieldManager,
		Undoes: undoes, Run: run,
	}
	if undoes == "" {
		h.Allowed = f.Allowed()
	}
	return w.Journal(f, h)
}

// typed returns the arguments of a command as they were typed, without credentials.
func typed(c *cobra.Command, args []string) []string {
	return append(slices.Clone(args), flags.Typed(c.Flags())...)
}
