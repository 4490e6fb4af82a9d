package apply

import (
	"errors"
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// journalRecord is the Journal of a Writer.
type journalRecord struct{ *journal.Writer }

// Attempt implements Journal.
func (j journalRecord) Attempt(v *Verified) error {
	return j.Writer.Attempt(journal.Attempt{
		Entry: v.JournalIndex, Subresource: v.Key.Subresource, UID: v.Key.UID, ResourceVersion: v.ResourceVersion(),
		Method: v.Method, Partial: v.Answered(),
	})
}

// Result implements Journal.
func (j journalRecord) Result(v *Verified, r *Result) error {
	out := journal.Result{
		Entry: v.JournalIndex, Subresource: v.Key.Subresource, UID: v.Key.UID, Outcome: string(r.Outcome),
		Written: r.Outcome == Applied, Failed: r.Err != nil, Retries: r.Retries,
		More: r.Outcome.Reached() && v.status != nil && v.status.Outcome == Planned,
	}
	if out.Written {
		out.ResourceVersion, out.Partial = r.After.GetResourceVersion(), r.Touched
	}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	return j.Writer.Result(out)
}

// openJournal starts the journal with what is planned; a resumed one has that
// already.
func (x *Executor) openJournal(ready []*Task) error {
	switch {
	case x.journal != nil:
		for _, q := range ready {
			q.verified.setJournalIndex(q.JournalIndex)
			x.journal.Evaluated(q.JournalIndex, *q.Entry)
		}
		return nil
	case x.Journal == nil:
		return nil
	}
	j, err := x.Journal()
	if err != nil {
		return err
	}
	x.ResumeJournal(j)
	for i, q := range ready {
		q.JournalIndex = i
		q.verified.setJournalIndex(i)
		entry, v := *q.Entry, q.verified
		entry.Method = v.Method
		if !v.Reason.None() {
			entry.MethodReason = v.Reason.String()
		}
		if err := j.Plan(entry); err != nil {
			return err
		}
	}
	return j.Begin()
}

// ResumeJournal continues a journal, in which every task has its JournalIndex.
func (x *Executor) ResumeJournal(j *journal.Writer) {
	x.journal, x.Writer.Journal = j, journalRecord{j}
	fmt.Fprintf(x.ErrOut, "Journal: %s\n", j.Path())
}

// closeJournal ends the journal. An error of the journal that has ended the run is
// not returned again.
func (x *Executor) closeJournal(interrupted bool, ended error) error {
	if x.journal == nil {
		return nil
	}
	unrecorded := x.journal.End(journal.End{Interrupted: interrupted, Outcomes: x.tally.Outcomes})
	if x.tally.NotTried > 0 {
		fmt.Fprintf(x.ErrOut, "To continue with %s: %s --resume %s\n", wording.Plural(x.tally.NotTried, "object"), x.Command, wording.ShellQuote(x.journal.Name()))
	}
	unclosed := x.journal.Close()
	switch {
	case unrecorded == nil:
		return unclosed
	case errors.Is(ended, unrecorded):
		return nil
	}
	return unrecorded
}
