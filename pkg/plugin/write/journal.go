package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// attempt records that a change will be sent.
func (w *Writer) attempt(v *Verified) error {
	if w.Journal == nil {
		return nil
	}
	return w.Journal.Attempt(journal.Attempt{
		Entry: v.JournalIndex, Subresource: v.Key.Subresource, UID: v.Key.UID, ResourceVersion: v.Version,
		Method: v.Method, Partial: v.Answered(),
	})
}

// outcome records the outcome of a change, with the request of the last attempt.
func (w *Writer) outcome(v *Verified, r *Result) error {
	if w.Journal == nil {
		return nil
	}
	out := recordOf(v.JournalIndex, v.Key.Subresource, r)
	out.More = r.Outcome.Reached() && v.status != nil && v.status.Outcome == Planned
	if out.Written {
		out.ResourceVersion, out.Partial = r.After.GetResourceVersion(), r.Touched
	}
	return w.Journal.Result(out)
}

// recordOf is the record of an entry's result, without the stored object.
func recordOf(entry int, subresource string, r *Result) journal.Result {
	out := journal.Result{
		Entry: entry, Subresource: subresource, UID: r.Key.UID, Outcome: string(r.Outcome),
		Written: r.Outcome == Applied, Failed: r.Err != nil, Retries: r.Retries,
	}
	if r.Err != nil {
		out.Error = r.Err.Error()
	}
	return out
}

// openJournal starts the journal with the planned entries, unless the run is resumed.
func (x *Executor) openJournal(ready []*Task) error {
	switch {
	case x.Writer.Journal != nil:
		for _, q := range ready {
			q.verified.setJournalIndex(q.JournalIndex)
			x.Writer.Journal.Evaluated(q.JournalIndex, q.Entry)
		}
		return nil
	case x.Journal == nil:
		return nil
	}
	j, err := x.Journal()
	if err != nil {
		return err
	}
	from := j.Len()
	if x.Writer.Journal = j; from == 0 { // else it was reported before
		x.ResumeJournal(j)
	}
	unmade := slices.DeleteFunc(slices.Clone(x.tasks), func(t *Task) bool { return t.unmade == nil })
	for i, q := range ready {
		q.JournalIndex = from + i
		q.verified.setJournalIndex(q.JournalIndex)
		q.Entry.Method, q.Entry.MethodReason = q.verified.Method, q.verified.Reason.String()
		if err := j.Plan(q.Entry); err != nil {
			return err
		}
	}
	for _, t := range unmade {
		t.unmade.Entry = j.Len()
		if err := j.Plan(t.Entry); err != nil {
			return err
		}
	}
	if err := j.Begin(); err != nil {
		return err
	}
	for _, t := range unmade {
		if err := j.Result(*t.unmade); err != nil {
			return err
		}
	}
	return nil
}

// ResumeJournal continues a journal; every task has its JournalIndex.
func (x *Executor) ResumeJournal(j *journal.Writer) {
	x.Writer.Journal = j
	fmt.Fprintf(x.ErrOut, "Journal: %s\n", j.Path())
}

// closeJournal ends the journal. A journal error that ended the run is not returned again.
func (x *Executor) closeJournal(interrupted bool, ended error) error {
	if x.Writer.Journal == nil {
		return nil
	}
	unrecorded := x.Writer.Journal.End(journal.End{Interrupted: interrupted, Outcomes: x.tally.Outcomes})
	if x.tally.NotTried > 0 && x.Command != "" {
		fmt.Fprintf(x.ErrOut, "To continue with %s: %s --resume %s\n", wording.Plural(x.tally.NotTried, "object"),
			x.Command, wording.ShellQuote(x.Writer.Journal.Name()))
	}
	unclosed := x.Writer.Journal.Close()
	switch {
	case unrecorded == nil:
		return unclosed
	case errors.Is(ended, unrecorded):
		return nil
	}
	return unrecorded
}

// resolvePending looks up the pending writes of an interrupted run, and reports the ones with a known
// outcome. The others are returned.
func (x *Executor) resolvePending(ctx context.Context, tasks []*Task) ([]*Task, error) {
	rest := make([]*Task, 0, len(tasks))
	return rest, ForEach(len(tasks), x.Concurrency,
		func(i int) (*Result, error) { return x.resolveWrite(ctx, tasks[i]) },
		func(i int, r *Result) (enough bool, _ error) {
			if r == nil {
				rest = append(rest, tasks[i])
				return false, nil
			}
			return false, x.report(tasks[i], r)
		})
}

// settle looks up the writes that were pending when the server went away, like resolvePending, as long as
// Away permits. Writes that were not stored stay without a result.
func (x *Executor) settle(ctx context.Context, ready []*Task, lost error) {
	if x.Away == nil || x.Writer.Journal == nil {
		return
	}
	var doubtful []*Task
	for _, q := range ready {
		if q.reported {
			continue
		}
		if q.Pending = x.Writer.Journal.Open(q.JournalIndex); q.Pending != nil {
			doubtful = append(doubtful, q)
		}
	}
	for len(doubtful) > 0 && cluster.Uncertain(ctx, lost) && x.Away(ctx, lost) {
		_, lost = x.resolvePending(ctx, doubtful)
		doubtful = slices.DeleteFunc(doubtful, func(q *Task) bool { return q.reported })
	}
}

// resolveWrite returns nil if the change is still to be made, or if this depends on another evaluation.
func (x *Executor) resolveWrite(ctx context.Context, t *Task) (*Result, error) {
	if t.Pending == nil {
		return nil, nil // no write was pending
	}
	key := t.Key
	key.UID = t.Pending.UID
	if t.Pending.Subresource != "" {
		key.Subresource = t.Pending.Subresource
	}
	outcome, live, err := x.Writer.lookUp(ctx, key, t.Pending.ResourceVersion, t.Pending.Partial)
	switch {
	case errors.Is(err, errStale):
		t.unsure = t.Pending.Withholds()
		return nil, nil
	case err != nil, outcome == NotTried:
		return nil, err
	}
	r := &Result{Key: t.Key, Outcome: outcome, Method: t.Pending.Method, Touched: t.Pending.Partial, Found: true}
	if outcome == Drifted {
		r.because(Drifted, driftError(t.Pending.Drift(live.Object)))
	}
	j := recordOf(t.JournalIndex, t.Pending.Subresource, r)
	if j.UID = key.UID; j.Written {
		j.ResourceVersion, j.Partial = live.GetResourceVersion(), t.Pending.Answered(live)
		j.More = t.Pending.Subresource == "" && t.Entry.SplitsStatus()
	}
	if x.Writer.Journal != nil {
		err = x.Writer.Journal.Result(j)
	}
	if j.More {
		status := t.Entry.StatusPart()
		t.Entry, t.stored = &status, r // the object itself was stored
		return nil, err
	}
	return r, err
}

// recordUnwritten records, in a resumed journal, the result of an entry that is no longer written. A rejected
// entry stays planned for a retry. Without a journal, the result is kept for the run's own journal, unless
// the user was shown that the object is skipped.
func (x *Executor) recordUnwritten(t *Task, v *Verified) error {
	// an undo has no journal here, and did not undo deleted objects
	if x.Writer.Journal == nil && !v.Outcome.Reached() && !(v.Outcome == Managed && t.managed) &&
		(v.Err != nil || len(t.Rules) > 0) {
		out := recordOf(0, "", &v.Result)
		t.unmade = &out
	}
	if x.Writer.Journal == nil || v.Outcome.Rejection() || v.Outcome == Managed || v.Outcome == Ignored ||
		v.Outcome == NotTried {
		return nil
	}
	found := t.unsure && v.Outcome == Unchanged
	if found { // The lookup was undecided, but nothing is left to change: it was stored and can be undone.
		v.Outcome, v.Found, v.Method, v.Touched = Applied, true, t.Pending.Method, t.Pending.Partial
	}
	subresource := ""
	if t.Pending != nil {
		subresource = t.Pending.Subresource
	}
	out := recordOf(t.JournalIndex, subresource, &v.Result)
	if found {
		out.ResourceVersion, out.Partial = v.Version, t.Pending.Partial
	}
	return x.Writer.Journal.Result(out)
}
