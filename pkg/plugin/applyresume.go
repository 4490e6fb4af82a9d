package plugin

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

// errNotBegun ends the resumption of a run that had not come to its writes.
var errNotBegun = errors.New("that run was cut off before its first write: there is nothing to go on with, run the command again")

// resume takes up a journal, and tells how far that run had come.
func (f *ApplyFlags) resume(c *cobra.Command, w *factory.Factory) (*apply.RecordedRun, *journal.Writer, error) {
	if c.Flags().Changed("journal") {
		return nil, nil, errors.New("--resume goes on with the journal that it names: leave out --journal")
	}
	j, writer, err := f.openForResume(w)
	if err == nil {
		err = f.mayResume(c, w, j)
	}
	if err != nil {
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
	fmt.Fprintf(w.Streams.ErrOut, "Resuming: %d done, %d failed, %d begun without a known outcome, %d not begun\n",
		counts[journal.Done], counts[journal.Failed], counts[journal.InDoubt]+counts[journal.Partial], counts[journal.Planned])
	if allowed := j.Header.Allowed.String(); allowed != "" {
		fmt.Fprintf(w.Streams.ErrOut, "As when the run began: %s\n", allowed)
	}
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Status() == journal.Failed && len(e.Results) > 0 {
			// Whoever was cut off may not have come to say so.
			fmt.Fprintf(w.Streams.ErrOut, "Failed before: %s\n", e.Results[len(e.Results)-1].Error)
		}
	}
	return apply.FromJournal(j), writer, nil
}

// mayResume tells whether a journal may be taken up here, as the user wants it.
func (f *ApplyFlags) mayResume(c *cobra.Command, w *factory.Factory, j *journal.Journal) error {
	switch {
	case !j.Begun:
		return fmt.Errorf("journal %s: %w", j.Path, errNotBegun)
	case j.Header.Command != applyExisting:
		return fmt.Errorf("journal %s is of the command %s, which is not resumed but run again: it goes on where it was", j.Path, j.Header.Command)
	case c.Flags().Changed("field-manager") && f.FieldManager != j.Header.FieldManager:
		return fmt.Errorf("--field-manager %s: the run that is resumed writes as %s", f.FieldManager, j.Header.FieldManager)
	}
	if err := w.CheckRun(c.Context(), &j.Header.Run, 0); err != nil {
		return fmt.Errorf("journal %s: %w", j.Path, err)
	}
	return nil
}

// openForResume reads a journal; one that is only rehearsed is not written to.
func (f *ApplyFlags) openForResume(w *factory.Factory) (*journal.Journal, *journal.Writer, error) {
	if f.Rehearses() {
		j, err := journal.Read(f.Resume)
		return j, nil, err
	}
	return journal.Resume(f.Resume, w.JournalOptions(&f.Write))
}
