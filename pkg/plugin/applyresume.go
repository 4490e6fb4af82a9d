package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/touched"
)

// errNotBegun ends the resumption of a run that had not come to its writes.
var errNotBegun = errors.New("that run was cut off before its first write: there is nothing to go on with, run the command again")

// resume takes up a journal: what has a result is left alone, what was planned
// alone is written like from a plan, and what was begun is looked up first.
func (f *ApplyFlags) resume(c *cobra.Command, w *wiring) (*recordedRun, *journal.Writer, error) {
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
	f.allow(j.Header.Allowed)
	if writer != nil {
		if err := writer.Resumed(journal.Resumed{Version: Version(), Arguments: typed(c, nil)}); err != nil {
			return nil, nil, err
		}
	}
	run := &recordedRun{Run: j.Header.Run, name: "journal " + j.Path, masker: w.secrets}
	counts := j.Count()
	fmt.Fprintf(w.streams.ErrOut, "Resuming: %d done, %d failed, %d begun without a known outcome, %d not begun\n",
		counts[journal.Done], counts[journal.Failed], counts[journal.InDoubt]+counts[journal.Partial], counts[journal.Planned])
	if allowed := j.Header.Allowed.String(); allowed != "" {
		fmt.Fprintf(w.streams.ErrOut, "As when the run began: %s\n", allowed)
	}
	run.written, run.failed = written(j), counts[journal.Failed]
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Status() == journal.Failed && len(e.Results) > 0 {
			// Whoever was cut off may not have come to say so.
			fmt.Fprintf(w.streams.ErrOut, "Failed before: %s\n", e.Results[len(e.Results)-1].Error)
		}
		if e, ok := left(e, i); ok {
			run.entries = append(run.entries, e)
		}
	}
	return run, writer, nil
}

// mayResume tells whether a journal may be taken up here, as the user wants it.
func (f *ApplyFlags) mayResume(c *cobra.Command, w *wiring, j *journal.Journal) error {
	switch {
	case !j.Begun:
		return fmt.Errorf("journal %s: %w", j.Path, errNotBegun)
	case j.Header.Command != applyExisting:
		return fmt.Errorf("journal %s is of the command %s, which is not resumed but run again: it goes on where it was", j.Path, j.Header.Command)
	case c.Flags().Changed("field-manager") && f.FieldManager != j.Header.FieldManager:
		return fmt.Errorf("--field-manager %s: the run that is resumed writes as %s", f.FieldManager, j.Header.FieldManager)
	}
	if err := w.checkRun(c.Context(), &j.Header.Run, 0); err != nil {
		return fmt.Errorf("journal %s: %w", j.Path, err)
	}
	return nil
}

// written counts the entries that something was stored of.
func written(j *journal.Journal) int {
	n := 0
	for i := range j.Entries {
		if slices.ContainsFunc(j.Entries[i].Results, func(r journal.Result) bool { return r.Written }) {
			n++
		}
	}
	return n
}

// openForResume reads a journal; one that is only rehearsed is not written to.
func (f *ApplyFlags) openForResume(w *wiring) (*journal.Journal, *journal.Writer, error) {
	if f.rehearses() {
		j, err := journal.Read(f.Resume)
		return j, nil, err
	}
	return journal.Resume(f.Resume, w.journalOptions(&f.WriteFlags))
}

// left is what is still to be done of an entry.
func left(e *journal.Entry, mark int) (recordedEntry, bool) {
	out := recordedEntry{Entry: e.Entry, mark: mark}
	switch e.Status() {
	case journal.Done, journal.Failed:
		return out, false
	case journal.Partial:
		out.Entry = statusOf(out.Entry)
	case journal.InDoubt:
		out.attempted, out.trace = true, e.Doubt()
		if out.trace.Subresource == "status" && e.Object.Subresource == "" {
			out.Entry = statusOf(out.Entry) // the other part is done
		}
	}
	return out, true
}

// statusOf is the part of an entry that goes to /status.
func statusOf(e plan.Entry) plan.Entry {
	var fields []touched.Field
	for _, f := range e.Fields {
		if name := f.Path[0].FieldName; name != nil && *name == "status" {
			fields = append(fields, f)
		}
	}
	e.Fields = fields
	return e
}

// settle looks up what became of the writes that were begun, and reports those
// that are settled by that. The others are tasks as they were.
func (x *executor) settle(ctx context.Context, tasks []*task) ([]*task, error) {
	var rest []*task
	var broken error
	err := apply.Each(len(tasks), x.Concurrency,
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
func (x *executor) settleOne(ctx context.Context, t *task) (*apply.Result, error) {
	if t.trace == nil {
		return nil, nil //nolint:nilnil // nothing was begun, so that there is nothing to tell
	}
	key := t.key
	key.UID = t.trace.UID
	if t.trace.Subresource != "" {
		key.Subresource = t.trace.Subresource
	}
	fate, live, err := x.Writer.Find(ctx, apply.Trace{Key: key, ResourceVersion: t.trace.ResourceVersion, Touched: t.trace.Touched})
	if err != nil {
		return nil, err
	}
	x.Masker.Learn(live)
	r := &apply.Result{Key: t.key, Method: t.trace.Method, Touched: t.trace.Touched, Found: true}
	j := journal.Result{Entry: t.mark, Subresource: t.trace.Subresource, UID: t.trace.UID}
	switch fate {
	case apply.Stored:
		r.Outcome = apply.Applied
		j.Written, j.ResourceVersion, j.Touched = true, live.GetResourceVersion(), t.trace.Answered(live)
		j.More = t.trace.Subresource == "" && touchesStatus(t.entry)
	case apply.Gone:
		r.Outcome = apply.Deleted
	case apply.Other:
		r.Outcome = apply.Replaced
	case apply.Contradicted:
		r.Outcome, r.Err = apply.Drifted, &apply.ObjectError{Key: t.key, Err: apply.Contradiction(t.trace.Touched, live)}
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

func touchesStatus(e plan.Entry) bool {
	return len(statusOf(e).Fields) > 0 && e.Object.Subresource == "" && len(statusOf(e).Fields) < len(e.Fields)
}

// recordUnwritten keeps in a journal that was taken up what came of an entry that
// is not to be written any more. A rejection leaves it as planned, so that it can
// be tried once more.
func (x *executor) recordUnwritten(t *task, v *apply.Verified) error {
	if x.journal == nil || v.Outcome.Rejection() || v.Outcome == apply.Managed || v.Outcome == apply.NotTried {
		return nil
	}
	out := journal.Result{Entry: t.mark, UID: v.Key.UID}
	if t.trace != nil {
		out.Subresource = t.trace.Subresource
	}
	if t.trace != nil && v.Outcome == apply.Unchanged {
		// The look-up missed the write that was begun, but nothing is left to change:
		// it was stored after all, and can be undone.
		v.Outcome, v.Found, v.Method, v.Touched = apply.Applied, true, t.trace.Method, t.trace.Touched
		out.Written, out.ResourceVersion, out.Touched = true, v.ResourceVersion(), t.trace.Touched
	}
	out.Outcome, out.Failed = string(v.Outcome), v.Err != nil
	if v.Err != nil {
		out.Error = strings.TrimSpace(v.Err.Error())
	}
	return x.journal.Result(out)
}
