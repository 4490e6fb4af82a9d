package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// resolvePending looks up the writes that an interrupted run had started, and reports
// those whose outcome is known now. The others are returned.
func (x *Executor) resolvePending(ctx context.Context, tasks []*Task) ([]*Task, error) {
	rest := make([]*Task, 0, len(tasks))
	var broken error
	err := ForEach(len(tasks), x.Concurrency,
		func(i int) (*Result, error) { return x.resolveWrite(ctx, tasks[i]) },
		func(i int, r *Result) (enough bool) {
			if r == nil {
				rest = append(rest, tasks[i])
				return false
			}
			broken = x.report(tasks[i], r)
			return broken != nil
		})
	return rest, errors.Join(err, broken)
}

// settle looks up the writes that were started before the server went away, as resolvePending does for a run that was
// interrupted, for as long as Away lets it. What was not stored stays without a result.
func (x *Executor) settle(ctx context.Context, ready []*Task, lost error) error {
	if x.Away == nil || x.journal == nil {
		return nil
	}
	var doubtful []*Task
	for _, q := range ready {
		if q.reported {
			continue
		}
		if q.Pending = x.journal.Open(q.JournalIndex); q.Pending != nil {
			doubtful = append(doubtful, q)
		}
	}
	for len(doubtful) > 0 && cluster.Uncertain(ctx, lost) && x.Away(ctx, lost) {
		_, lost = x.resolvePending(ctx, doubtful)
		doubtful = slices.DeleteFunc(doubtful, func(q *Task) bool { return q.reported })
	}
	return nil
}

// resolveWrite is nil where the change is still to be made, or where that is up to
// another evaluation.
func (x *Executor) resolveWrite(ctx context.Context, t *Task) (*Result, error) {
	if t.Pending == nil {
		return nil, nil // no write was started
	}
	key := t.Key
	key.UID = t.Pending.UID
	if t.Pending.Subresource != "" {
		key.Subresource = t.Pending.Subresource
	}
	outcome, live, err := x.Writer.lookUp(t.under(ctx), key, t.Pending.ResourceVersion, t.Pending.Partial)
	switch {
	case errors.Is(err, errStale):
		t.unsure = t.Pending.Withholds()
		return nil, nil
	case err != nil, outcome == NotTried:
		return nil, err
	}
	r := &Result{Key: t.Key, Outcome: outcome, Method: t.Pending.Method, Touched: t.Pending.Partial, Found: true}
	j := journal.Result{Entry: t.JournalIndex, Subresource: t.Pending.Subresource, UID: t.Pending.UID}
	switch outcome {
	case Applied:
		j.Written, j.ResourceVersion, j.Partial = true, live.GetResourceVersion(), t.Pending.Answered(live)
		j.More = t.Pending.Subresource == "" && t.Entry.SplitsStatus()
	case Drifted:
		r.because(Drifted, &DriftError{Fields: t.Pending.Drift(live.Object)})
		j.Failed, j.Error = true, r.Err.Error()
	}
	j.Outcome = string(r.Outcome)
	if x.journal != nil {
		err = x.journal.Result(j)
	}
	if j.More {
		status := t.Entry.StatusPart()
		t.Entry, t.stored = &status, r // that of the object itself was stored
		return nil, err
	}
	return r, err
}

// recordUnwritten records in a resumed journal the result of an entry that is not
// written any more. A rejected entry stays planned, so that it can be tried again.
func (x *Executor) recordUnwritten(t *Task, v *Verified) error {
	if x.journal == nil || v.Outcome.Rejection() || v.Outcome == Managed || v.Outcome == NotTried {
		return nil
	}
	out := journal.Result{Entry: t.JournalIndex, UID: v.Key.UID}
	if t.Pending != nil {
		out.Subresource = t.Pending.Subresource
	}
	if t.unsure && v.Outcome == Unchanged {
		// The lookup could not tell, but nothing is left to change: it was stored, and can be undone.
		v.Outcome, v.Found, v.Method, v.Touched = Applied, true, t.Pending.Method, t.Pending.Partial
		out.Written, out.ResourceVersion, out.Partial = true, v.ResourceVersion(), t.Pending.Partial
	}
	out.Outcome, out.Failed = string(v.Outcome), v.Err != nil
	if v.Err != nil {
		out.Error = strings.TrimSpace(v.Err.Error())
	}
	return x.journal.Result(out)
}
