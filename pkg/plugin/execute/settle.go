package execute

import (
	"context"
	"errors"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/parallel"
)

// settle looks up what became of the writes that were begun, and reports those
// that are settled by that. The others are tasks as they were.
func (x *Executor) settle(ctx context.Context, tasks []*Task) ([]*Task, error) {
	var rest []*Task
	var broken error
	err := parallel.Each(len(tasks), x.Concurrency,
		func(i int) (*apply.Result, error) { return x.settleOne(ctx, tasks[i]) },
		func(i int, r *apply.Result) (enough bool) {
			if r == nil {
				rest = append(rest, tasks[i])
				return false
			}
			broken = x.report(tasks[i], r)
			return broken != nil
		})
	return rest, errors.Join(err, broken)
}

// settleOne is nil where the change is still to be made, or where that is up to
// another evaluation.
func (x *Executor) settleOne(ctx context.Context, t *Task) (*apply.Result, error) {
	if t.Trace == nil {
		return nil, nil //nolint:nilnil // nothing was begun, so that there is nothing to tell
	}
	key := t.Key
	key.UID = t.Trace.UID
	if t.Trace.Subresource != "" {
		key.Subresource = t.Trace.Subresource
	}
	fate, live, err := x.Writer.Find(ctx, apply.Trace{Key: key, ResourceVersion: t.Trace.ResourceVersion, Touched: t.Trace.Touched})
	if err != nil {
		return nil, err
	}
	x.Masker.Learn(live)
	r := &apply.Result{Key: t.Key, Method: t.Trace.Method, Touched: t.Trace.Touched, Found: true}
	j := journal.Result{Entry: t.Mark, Subresource: t.Trace.Subresource, UID: t.Trace.UID}
	switch fate {
	case apply.Stored:
		r.Outcome = apply.Applied
		j.Written, j.ResourceVersion, j.Touched = true, live.GetResourceVersion(), t.Trace.Answered(live)
		j.More = t.Trace.Subresource == "" && t.Entry.SplitsStatus()
	case apply.Gone:
		r.Outcome = apply.Deleted
	case apply.Other:
		r.Outcome = apply.Replaced
	case apply.Contradicted:
		r.Outcome, r.Err = apply.Drifted, &apply.ObjectError{Key: t.Key, Err: apply.Contradiction(t.Trace.Touched, live)}
		j.Failed, j.Error = true, r.Err.Error()
	default:
		return nil, nil //nolint:nilnil // it was not stored: there is nothing to tell
	}
	j.Outcome = string(r.Outcome)
	if x.journal != nil {
		err = x.journal.Result(j)
	}
	if t.statusLeft = j.More; j.More {
		return nil, err
	}
	return r, err
}

// recordUnwritten keeps in a journal that was taken up what came of an entry that
// is not to be written any more. A rejection leaves it as planned, so that it can
// be tried once more.
func (x *Executor) recordUnwritten(t *Task, v *apply.Verified) error {
	if x.journal == nil || v.Outcome.Rejection() || v.Outcome == apply.Managed || v.Outcome == apply.NotTried {
		return nil
	}
	out := journal.Result{Entry: t.Mark, UID: v.Key.UID}
	if t.Trace != nil {
		out.Subresource = t.Trace.Subresource
	}
	if t.Trace != nil && v.Outcome == apply.Unchanged {
		// The look-up missed the write that was begun, but nothing is left to change:
		// it was stored after all, and can be undone.
		v.Outcome, v.Found, v.Method, v.Touched = apply.Applied, true, t.Trace.Method, t.Trace.Touched
		out.Written, out.ResourceVersion, out.Touched = true, v.ResourceVersion(), t.Trace.Touched
	}
	out.Outcome, out.Failed = string(v.Outcome), v.Err != nil
	if v.Err != nil {
		out.Error = strings.TrimSpace(v.Err.Error())
	}
	return x.journal.Result(out)
}
