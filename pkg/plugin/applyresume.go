package plugin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

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
