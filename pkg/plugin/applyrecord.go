package plugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

// recordedOptions returns the options of a run that a plan or a journal describes.
func (f *ApplyFlags) recordedOptions(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (_ *ApplyOptions, err error) {
	if f.cluster == nil || !f.cluster.shown { // else the plan is of these very flags
		if err := f.Record.Check(c.Flags(), args); err != nil {
			return nil, err
		}
	}
	f.Policies.Recorded = true
	if f.Resume != "" {
		var err error
		if f.Resume, err = journal.Find(f.Resume, currentContext(f.Config), (*journal.Run).Resumable); err != nil {
			return nil, err
		}
		if err := flags.CheckFiles(c.Flags(), f.Resume); err != nil {
			return nil, err
		}
	}
	w, err := factory.Open(&f.Evaluate, streams, f.Output.ShowSecrets, true)
	if err != nil {
		return nil, err
	}
	run, resumed, err := f.load(c, w)
	if err != nil {
		return nil, err
	}
	evaluation, err := w.Repeat(c.Context(), &run.Run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", run.Name, err)
	}
	o, err := f.newOptions(c, w, evaluation.Request)
	if err != nil {
		return nil, err
	}
	o.evaluating(c, f, evaluation)
	o.Record = run
	o.Executor.Confirmed = f.Plan != "" // which was reviewed
	switch {
	case f.Rehearses():
	case resumed != nil:
		o.Executor.ResumeJournal(resumed)
	default:
		o.Executor.Journal, err = newJournal(w, c, args, &f.Write, journal.Header{Allowed: f.Allowed(), Run: run.Run})
	}
	return o, err
}

// load reads the plan or journal, and checks that it can be applied here and now. The
// writer is that of a journal.
func (f *ApplyFlags) load(c *cobra.Command, w *factory.Factory) (*apply.RecordedRun, *journal.Writer, error) {
	if f.Plan != "" {
		run, err := loadPlan(f.Plan)
		if err == nil {
			err = w.CheckRun(c.Context(), &run.Run, f.PlanMaxAge)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("nothing was written: %w", err)
		}
		return run, nil, nil
	}
	return f.resume(c, w)
}

func loadPlan(path string) (*apply.RecordedRun, error) {
	p, err := plan.LoadOwn(path)
	if err != nil {
		return nil, err
	}
	return apply.FromPlan(p, path), nil
}

// errNotBegun reports that a run had not written anything yet.
var errNotBegun = errors.New("that run was interrupted before its first write: there is nothing to resume, run the command again")

// resume opens the journal of an interrupted run, and prints how far it had come.
func (f *ApplyFlags) resume(c *cobra.Command, w *factory.Factory) (*apply.RecordedRun, *journal.Writer, error) {
	if c.Flags().Changed("journal") {
		return nil, nil, errors.New("--journal cannot be used with --resume, which continues the journal that it names")
	}
	j, writer, err := f.openForResume(w)
	if err != nil {
		return nil, nil, err
	}
	if err := f.mayResume(c, w, j); err != nil {
		return nil, nil, err
	}
	f.FieldManager = j.Header.FieldManager
	f.Allow(j.Header.Allowed)
	if writer != nil {
		if err := writer.Resumed(journal.Resumed{Version: version.Release(), Arguments: typed(c, nil)}); err != nil {
			return nil, nil, err
		}
	}
	counts := j.Count()
	fmt.Fprintf(w.Streams.ErrOut, "Resuming: %d done, %d failed, %d started with unknown outcome, %d not started\n",
		counts[journal.Done], counts[journal.Failed], counts[journal.InDoubt]+counts[journal.Partial], counts[journal.Planned])
	if options := originalOptions(&j.Header); options != "" {
		fmt.Fprintf(w.Streams.ErrOut, "With the options of the original run: %s\n", redact.EscapeLine(options))
	}
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Status() == journal.Failed && len(e.Results) > 0 {
			// The run may have been killed before it could print this.
			fmt.Fprintf(w.Streams.ErrOut, "Failed earlier: %s\n", redact.EscapeLine(e.Results[len(e.Results)-1].Error))
		}
	}
	return apply.FromJournal(j), writer, nil
}

// originalOptions are the flags that a resumed run takes over, as they are typed.
func originalOptions(h *journal.Header) string {
	var options []string
	if allowed := h.Allowed.String(); allowed != "" {
		options = append(options, allowed)
	}
	if h.FieldManager != apply.DefaultFieldManager {
		options = append(options, "--field-manager="+h.FieldManager)
	}
	if h.Secrets {
		options = append(options, "--journal-secrets")
	}
	return strings.Join(options, " ")
}

// mayResume returns an error if a journal cannot be resumed here with the flags of the user.
func (f *ApplyFlags) mayResume(c *cobra.Command, w *factory.Factory, j *journal.Journal) error {
	switch {
	case !j.Begun:
		return fmt.Errorf("journal %s: %w", j.Path, errNotBegun)
	case j.Header.Command != applyExisting:
		return fmt.Errorf("journal %s is of the command %s: run that command again instead, it continues where it was", j.Path, j.Header.Command)
	case c.Flags().Changed("field-manager") && f.FieldManager != j.Header.FieldManager:
		return fmt.Errorf("--field-manager %s: the resumed run writes as %s", f.FieldManager, j.Header.FieldManager)
	}
	if err := w.CheckRun(c.Context(), &j.Header.Run, 0); err != nil {
		return fmt.Errorf("journal %s: %w", j.Path, err)
	}
	return nil
}

// openForResume reads a journal; a dry run does not write to it.
func (f *ApplyFlags) openForResume(w *factory.Factory) (*journal.Journal, *journal.Writer, error) {
	if f.Rehearses() {
		j, err := journal.Read(f.Resume)
		return j, nil, err
	}
	return journal.Resume(f.Resume, w.JournalOptions(&f.Write))
}
