package plugin

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// record is the Journal of a Writer: the mark of what is written is its place
// among the planned entries.
type record struct{ *journal.Writer }

// Attempt implements apply.Journal.
func (j record) Attempt(v *apply.Verified) error {
	return j.Writer.Attempt(journal.Attempt{
		Entry: v.Mark, Subresource: v.Key.Subresource, UID: v.Key.UID, ResourceVersion: v.ResourceVersion(),
		Method: v.Method, Touched: v.Answered(),
	})
}

// Result implements apply.Journal.
func (j record) Result(v *apply.Verified, r *apply.Result) error {
	out := journal.Result{
		Entry: v.Mark, Subresource: v.Key.Subresource, UID: v.Key.UID, Outcome: string(r.Outcome),
		Written: r.Outcome == apply.Applied, Failed: r.Err != nil, Retries: r.Retries,
		More: r.Outcome.Reached() && v.Status() != nil && v.Status().Outcome == apply.Planned,
	}
	if out.Written {
		out.ResourceVersion, out.Touched = r.After.GetResourceVersion(), r.Touched
	}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	return j.Writer.Result(out)
}

// openJournal begins the journal with what is planned; one that is taken up has
// that already.
func (x *executor) openJournal(ready []*task) error {
	switch {
	case x.journal != nil:
		for _, t := range ready {
			t.verified.SetMark(t.mark)
		}
		return nil
	case x.Journal == nil:
		return nil
	}
	j, err := x.Journal()
	if err != nil {
		return err
	}
	x.keep(j)
	for i, t := range ready {
		t.verified.SetMark(i)
		t.entry.Method = t.verified.Method
		if !t.verified.Reason.None() {
			t.entry.MethodReason = t.verified.Reason.String()
		}
		if err := j.Plan(t.entry); err != nil {
			return err
		}
		t.entry = plan.Entry{}
	}
	return j.Begin()
}

// keep keeps a journal of what is written from now on.
func (x *executor) keep(j *journal.Writer) {
	x.journal, x.Writer.Journal = j, record{j}
	fmt.Fprintf(x.ErrOut, "Journal: %s\n", j.Path())
}

// closeJournal ends the journal of a run that was not cut off.
func (x *executor) closeJournal(interrupted bool) error {
	if x.journal == nil {
		return nil
	}
	if err := x.journal.End(journal.End{Interrupted: interrupted, Outcomes: x.tally.outcomes}); err != nil {
		return err
	}
	if x.tally.notTried > 0 {
		fmt.Fprintf(x.ErrOut, "To go on with %s: %s --resume %s\n", plural(x.tally.notTried, "object"), x.Command, quote(x.journal.Path()))
	}
	return x.journal.Close()
}

// newJournal says how a run begins its journal.
func (w *wiring) newJournal(c *cobra.Command, args []string, f *WriteFlags, run plan.Run) (func() (*journal.Writer, error), error) {
	return w.newJournalOf(f, journal.Header{
		ID: journal.NewID(), Command: c.Name(), Arguments: typed(c, args), Started: time.Now(), FieldManager: f.FieldManager,
		Allowed: f.allowed(), Run: run,
	})
}

func (w *wiring) newJournalOf(f *WriteFlags, h journal.Header) (func() (*journal.Writer, error), error) {
	path := f.Journal
	if path == "" {
		dir, err := journal.Directory()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, journal.FileName(h.Started, w.client.Info().Context, h.ID))
	}
	return func() (*journal.Writer, error) { return journal.Create(path, h, w.journalOptions(f)) }, nil
}

func (w *wiring) journalOptions(f *WriteFlags) journal.Options {
	return journal.Options{Masker: w.secrets, Secrets: f.JournalSecrets}
}

// typed are the arguments of a command as they were typed, without credentials.
func typed(c *cobra.Command, args []string) []string {
	out := slices.Clone(args)
	c.Flags().Visit(func(f *pflag.Flag) {
		if isCredential(f.Name) {
			return
		}
		for _, value := range values(f) {
			out = append(out, typedFlag(f, value))
		}
	})
	return out
}

func isCredential(flag string) bool {
	return flag == "token" || flag == "username" || flag == "password"
}
