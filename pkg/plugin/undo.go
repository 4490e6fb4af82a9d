package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/intent"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
)

// undoManager is the field manager that owns the values that were put back: not
// the one whose values they replace, which gives the fields up.
const undoManager = "kubectl-mutate-undo"

// UndoFlags are what a user types after undo.
type UndoFlags struct {
	EvaluateFlags
	WriteFlags
	Output OutputFlags
}

// UndoOptions are what undo needs.
type UndoOptions struct {
	Journal  *journal.Journal
	Objects  []undo.Object
	Schemas  engine.Reader
	Executor *executor
	Preview  render.Printer
	Results  render.ResultPrinter
}

// NewUndoCommand is `undo`: the writes of a run, taken back.
func NewUndoCommand(evaluate EvaluateFlags, name string, streams genericiooptions.IOStreams) *cobra.Command {
	f := UndoFlags{EvaluateFlags: evaluate, WriteFlags: NewWriteFlags(), Output: NewOutputFlags(render.Diff)}
	f.FieldManager, f.IncludeManaged = undoManager, true
	c := &cobra.Command{
		Use:   "undo JOURNAL [TYPE/NAME ...]",
		Short: "Take back what a run wrote",
		Long: templates.LongDesc(`
			Take back what a run wrote, all of it or that of some objects alone. JOURNAL is the
			file in which the run has recorded it, or the ID that history shows.

			A value is put back only where the object still has the one that the server answered to
			the write. What somebody else has changed since is left alone, and told with who owns
			it now; so are values of Secrets, unless the run was made with --journal-secrets.

			What would be put back is shown first, and nothing is written before you agree. It is
			verified and journaled like any other run, so that it can be taken back itself. Fields
			that are removed belong to nobody then; a value that is put back belongs to the field
			manager kubectl-mutate-undo, and not to the run's any more.

			Exit codes: 0 everything was put back or had been before, 2 nothing was written, 3 some
			was put back and some was not, 130 interrupted.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What would be taken back of the run 0a1b2c3d?
			%[1]s undo 0a1b2c3d --dry-run=server

			# Take back what it did to one object
			%[1]s undo 0a1b2c3d deployment/web -n shop`, name)),
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.ToOptions(c, args, streams)
			if err != nil {
				return err
			}
			return exit(o.Run(c.Context()))
		},
	}
	f.Client.AddFlags(c)
	f.WriteFlags.AddFlags(c)
	f.Output.AddFlags(c, render.Diff+", "+render.ResultFormats())
	return c
}

// ToOptions reads the journal, and makes sure that it is of this cluster.
func (f *UndoFlags) ToOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*UndoOptions, error) {
	if err := f.WriteFlags.Validate(); err != nil {
		return nil, err
	}
	j, err := readJournal(args[0])
	if err != nil {
		return nil, err
	}
	f.Policies.recorded = true // there are none, and none are needed
	w, err := f.wire(streams, f.Output.ShowSecrets, true)
	if err != nil {
		return nil, err
	}
	here, err := w.here(c.Context())
	if err == nil {
		err = j.Header.Run.CheckCluster(here)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", j.Path, err)
	}
	o := &UndoOptions{Journal: j, Schemas: w.client}
	if o.Objects, err = w.undoable(j, args[1:]); err != nil {
		return nil, err
	}
	return o, f.wireExecutor(o, w, c, args, here)
}

// readJournal reads the journal that a user names.
func readJournal(name string) (*journal.Journal, error) {
	path, err := findJournal(name)
	if err != nil {
		return nil, err
	}
	return journal.Read(path)
}

// wireExecutor sets how what is put back is shown, and how it is written.
func (f *UndoFlags) wireExecutor(o *UndoOptions, w *wiring, c *cobra.Command, args []string, here plan.Cluster) error {
	f.TakeFrom = append(f.TakeFrom, o.Journal.Header.FieldManager) // it is the run's own that is taken back
	preview, results, err := f.Output.both(w.renderOptions(f.Output, engine.Request{}), f.DryRun, w.streams.ErrOut)
	if err != nil {
		return err
	}
	o.Preview, o.Results = preview, results
	o.Executor = w.executor(&f.WriteFlags, results)
	o.Executor.Writer.Server = newFreshServer(o.Executor.Writer.Server, o.Objects)
	o.Executor.Writer.PatchOnly = intent.Reason{Kind: intent.Ownership}
	if f.rehearses() {
		return nil
	}
	now := time.Now()
	o.Executor.Journal, err = w.newJournalOf(&f.WriteFlags, journal.Header{
		ID: journal.NewID(), Command: c.Name(), Arguments: typed(c, args), Started: now,
		FieldManager: f.FieldManager, Undoes: o.Journal.Header.ID,
		Run: plan.NewRun(here, Version(), now),
	})
	return err
}

// errNothingWritten tells that a journal has nothing to undo.
var errNothingWritten = errors.New("the run wrote nothing: there is nothing to take back")

// undoable are the objects that a run wrote to, and that the user has chosen.
func (w *wiring) undoable(j *journal.Journal, args []string) ([]undo.Object, error) {
	all := undo.Objects(j)
	if len(all) == 0 {
		return nil, fmt.Errorf("journal %s: %w", j.Path, errNothingWritten)
	}
	namespace := ""
	if w.Config.Namespace != nil {
		namespace = *w.Config.Namespace
	}
	if len(args) == 0 && namespace == "" {
		return all, nil
	}
	keys, err := resolve(w.client.Mapper(), args)
	if err != nil {
		return nil, err
	}
	chosen := func(o undo.Object) bool {
		key := o.Object.Key()
		named := func(k engine.ObjectKey) bool {
			return k.GroupKind == key.GroupKind && (k.Name == "" || k.Name == key.Name)
		}
		return (namespace == "" || namespace == key.Namespace) && (len(keys) == 0 || slices.ContainsFunc(keys, named))
	}
	all = slices.DeleteFunc(all, func(o undo.Object) bool { return !chosen(o) })
	if len(all) == 0 {
		return nil, fmt.Errorf("journal %s: the run wrote to no such object: %s", j.Path, strings.Join(args, " "))
	}
	return all, nil
}
