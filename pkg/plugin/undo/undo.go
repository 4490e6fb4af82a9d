package undo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// undoManager owns restored values. It differs from the manager of the run, which gives the fields up.
const undoManager = "kubectl-mutate-undo"

// Flags has the flags of undo.
type Flags struct{ apply.WriteFlags }

// NewCommand is `undo`: it reverts the writes of a run.
func NewCommand(evaluate flags.Evaluate, name string) *cobra.Command {
	f := Flags{
		apply.WriteFlags{Evaluate: evaluate, Write: flags.NewWrite(), Output: flags.NewOutput(formats.Diff)},
	}
	f.FieldManager, f.IncludeManaged = undoManager, true
	c := &cobra.Command{
		Use:        "undo RUN [TYPE/NAME ...]",
		SuggestFor: []string{"rollback", "revert", "restore"},
		Short:      "Undo what a run wrote",
		Long: templates.LongDesc(`
			Undo what a run wrote, to all of its objects or to some. RUN is the ID that history
			shows, the file in which the run was recorded, or "latest": the latest run on this
			context that has something to undo. With the directory of apply-existing --plan, the runs
			on all of its clusters are undone one by one, the last first, after one confirmation, unless
			objects or namespaces are typed.

			Objects that are named are those of the current namespace, of those of -n or --namespaces,
			or of all with -A; NAMESPACE/TYPE/NAME names one of any. If the run wrote that name in
			several namespaces and none is typed, nothing is undone. Without names all of the run is
			undone, or what it did in the namespaces that are typed.

			A value is restored only if the object still has the value that the server returned for
			the write. What has been changed since is left alone and reported with its current
			owner. So are values of Secrets, unless the run was made with --journal-secrets.

			The changes are shown first, and nothing is written before you confirm. They are
			verified and journaled like those of any other run, so that an undo can be undone too.
			A field that is removed has no owner any more; a value that is restored is owned by the
			field manager kubectl-mutate-undo, and no longer by that of the run.

			Exit codes: 0 everything is restored, 2 nothing was written, 3 some objects were
			restored and some were not, 130 interrupted.`),
		Example: templates.Examples(fmt.Sprintf(`
			# What would be undone of the run 0a1b2c3d?
			%[1]s undo 0a1b2c3d --dry-run=server

			# Undo the latest run
			%[1]s undo latest

			# Undo what it did to one object
			%[1]s undo 0a1b2c3d deployment/web -n shop`, name)),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("name a run: %[1]s undo latest, or an ID that %[1]s history lists", name)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.Interrupts.AnnounceWrites()
			err := process.RunE(c.Context())(f.runner(c, args))
			return process.OrInterrupted(c.Context(), f.Interrupts, err)
		},
	}
	c.Flags().BoolVarP(&f.Objects.AllNamespaces, "all-namespaces", "A", false, "Undo what was done to the named objects in all namespaces.")
	c.Flags().StringSliceVar(&f.Objects.Namespaces, "namespaces", nil, flags.NamespacesUsage)
	f.Client.AddFlags(c.Flags())
	f.AddQuietFlag(c.Flags())
	f.Write.AddFlags(c.Flags())
	f.Output.AddFlags(c.Flags(), formats.Names(output.Options{Writes: true}))
	f.Report.AddFlags(c.Flags(), formats.ReportNames(output.Options{Writes: true}))
	return c
}

// ToOptions reads the journal, and checks that it belongs to this cluster.
func (f *Flags) ToOptions(c *cobra.Command, args []string) (o *Options, err error) {
	if err := f.Write.Validate(); err != nil {
		return nil, err
	}
	path, err := journal.Find(args[0], flags.CurrentContext(f.Config), (*journal.Run).Undoable)
	if err != nil {
		return nil, err
	}
	if err := flags.CheckFiles(c.Flags(), path); err != nil {
		return nil, err
	}
	j, err := journal.Read(path)
	if err != nil {
		return nil, err
	}
	f.Policies.Recorded = true // undo needs no policies
	w, err := factory.Open(&f.Evaluate, f.Output.ShowSecrets, true)
	if err != nil {
		return nil, err
	}
	here, err := w.Here(c.Context())
	if err == nil {
		err = j.Header.Run.CheckCluster(here)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", j.Path, err)
	}
	if manager := j.Header.FieldManager; manager != write.DefaultFieldManager {
		fmt.Fprintf(w.Streams.ErrOut, "With the field manager of the run: %s. What it owns is taken back\n", redact.EscapeLine(manager))
	}
	o = &Options{Header: j.Header, Schemas: w.Client}
	if o.Objects, err = choose(w, j, args[1:]); err != nil {
		return nil, err
	}
	// undo takes back the run's own fields
	f.TakeFrom = append(f.TakeFrom, o.Header.FieldManager)
	if o.Printers, o.Executor, err = f.Writing(c, w, engine.Request{}); err != nil {
		return nil, err
	}
	o.Executor.ShowDrift, o.Executor.Prompt.Confirmed = nil, f.Cluster != nil && !f.narrows(args)
	if !f.Rehearses() {
		o.Executor.Journal, err = apply.NewJournal(w, c, args, &f.Write,
			journal.Header{Undoes: o.Header.ID, Run: plan.NewRun(here, process.Release(), time.Now())})
	}
	return o, err
}

// errNothingWritten reports that there is nothing to undo.
var errNothingWritten = errors.New("the run wrote nothing: there is nothing to undo")

// resolve resolves arguments as factory.Resolve does, and NAMESPACE/TYPE/NAME.
func resolve(mapper meta.RESTMapper, args []string) (keys []engine.ObjectKey, _ error) {
	rest := slices.Clone(args)
	for i, arg := range slices.Backward(args) {
		namespace, object, _ := strings.Cut(arg, "/")
		if namespace == "" || !strings.Contains(object, "/") {
			continue
		}
		key, err := factory.Resolve(mapper, []string{object})
		if err != nil {
			return nil, err
		}
		key[0].Namespace = namespace
		keys, rest = append(keys, key[0]), slices.Delete(rest, i, i+1)
	}
	others, err := factory.Resolve(mapper, rest)
	return append(keys, others...), err
}

// choose returns the written objects that args select. As everywhere, names are in the current namespace,
// unless arguments or flags say otherwise; if the run wrote such objects only in others, an error lists them.
func choose(w *factory.Factory, j *journal.Journal, args []string) ([]Object, error) {
	all := Objects(j)
	if len(all) == 0 {
		return nil, fmt.Errorf("journal %s: %w", j.Path, errNothingWritten)
	}
	if len(args) == 0 && !w.NamespacesTyped() {
		return all, nil
	}
	keys, err := resolve(w.Client.Mapper(), args)
	if err != nil {
		return nil, err
	}
	namespaces := w.Namespaces()
	var elsewhere []string // other namespaces with such written objects
	here := false          // the user's namespaces have such objects
	all = slices.DeleteFunc(all, func(o Object) bool {
		key := o.Object
		named := func(k engine.ObjectKey) bool {
			return k.GroupKind == key.GroupKind && (k.Name == "" || k.Name == key.Name) &&
				(k.Namespace == "" || k.Namespace == key.Namespace)
		}
		i := slices.IndexFunc(keys, named)
		switch {
		case len(args) > 0 && i < 0:
			return true
		case i >= 0 && keys[i].Namespace != "", key.Namespace == "" && i >= 0:
			return false
		case namespaces == nil, key.Namespace != "" && (&engine.Scope{Namespaces: namespaces}).In(key.Namespace):
			here = true
			return false
		}
		if key.Namespace != "" && !slices.Contains(elsewhere, key.Namespace) {
			elsewhere = append(elsewhere, key.Namespace)
		}
		return true
	})
	others := wording.Namespaces(elsewhere)
	switch what := strings.Join(args, " "); {
	case here && len(elsewhere) > 0 && !w.NamespacesTyped():
		return nil, fmt.Errorf("journal %s: nothing was written: the run wrote to %s in the namespaces %s: choose one with -n, some with --namespaces, or all with -A",
			j.Path, what, strings.Join(slices.Sorted(slices.Values(append(elsewhere, namespaces...))), ", "))
	case len(all) > 0:
	case len(args) == 0:
		return nil, fmt.Errorf("journal %s: the run wrote to nothing in %s", j.Path, wording.Namespaces(namespaces))
	case len(elsewhere) > 0:
		return nil, fmt.Errorf("journal %s: the run wrote to no such object: %s in %s, but to some in %s: choose one namespace with -n, or all with -A",
			j.Path, what, wording.Namespaces(namespaces), others)
	default:
		return nil, fmt.Errorf("journal %s: the run wrote to no such object: %s", j.Path, what)
	}
	return all, nil
}

// narrows reports whether only some written objects are undone: their number is known only from the cluster.
func (f *Flags) narrows(args []string) bool {
	return len(args) > 1 || (&factory.Factory{Evaluate: &f.Evaluate}).NamespacesTyped()
}

// runner returns the run of undo on one cluster, or on the clusters of a directory of journals.
func (f *Flags) runner(c *cobra.Command, args []string) (process.Runner, error) {
	if !plan.IsDirectory(args[0]) {
		return f.ToOptions(c, args)
	}
	if err := errors.Join(f.Write.Validate(), apply.CheckDirectory(c), flags.CheckFiles(c.Flags())); err != nil {
		return nil, err
	}
	if err := file.CheckDirectory(args[0]); err != nil {
		return nil, fmt.Errorf("%s: %w", args[0], err)
	}
	files, err := journal.Files(args[0])
	if err != nil {
		return nil, err
	}
	narrow := f.narrows(args)
	var runs []apply.ClusterRun
	for _, path := range slices.Backward(files) {
		j, err := journal.Glance(path)
		if err != nil {
			return nil, err
		}
		run := j.Run()
		if run.Written == 0 {
			continue
		}
		one := *f
		one.Config = flags.ConfigOf(f.Config, run.Context)
		one.TakeFrom = slices.Clone(f.TakeFrom)
		runs = append(runs, apply.ClusterRun{
			Context: run.Context, Writes: run.Written,
			Open: func(m *apply.WrittenCluster) (process.Runner, error) {
				one.Cluster = m
				return one.ToOptions(c, append([]string{path}, args[1:]...))
			},
		})
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: %w", args[0], errNothingWritten)
	}
	return f.NewWriteFleet(c, runs, c.CommandPath()+" "+wording.ShellQuote(args[0]), !narrow)
}
