package apply

import (
	"context"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// RecordedRun is a run whose changes are known before it is evaluated.
type RecordedRun struct {
	plan.Run
	Name    string // for messages: "plan FILE"
	entries []recordedEntry
	// summary is that of the evaluation when a plan was made; nil counts the entries.
	summary *evaluation.Summary
	// Written and Failed count the entries that have a result already.
	Written, Failed int
}

// recordedEntry is an object that is still to be written.
type recordedEntry struct {
	plan.Entry
	journalIndex int
	// pending is a write that was started and whose outcome is unknown; nil if there is
	// none.
	pending *journal.Attempt
}

// FromPlan returns all of a plan that was read from a file.
func FromPlan(p *plan.Plan, file string) *RecordedRun {
	r := &RecordedRun{Run: p.Run, Name: "plan " + file, summary: &p.Summary}
	for _, e := range p.Entries {
		r.entries = append(r.entries, recordedEntry{Entry: e})
	}
	return r
}

// FromJournal returns what is left of an interrupted run: entries with a result are
// skipped, planned ones are written as from a plan, and started ones are looked up
// first.
func FromJournal(j *journal.Journal) *RecordedRun {
	r := &RecordedRun{Run: j.Header.Run, Name: "journal " + j.Path, Written: written(j), Failed: j.Count()[journal.Failed]}
	for i := range j.Entries {
		if e, ok := remaining(&j.Entries[i], i); ok {
			r.entries = append(r.entries, e)
		}
	}
	return r
}

// written counts the entries of which something was stored.
func written(j *journal.Journal) int {
	n := 0
	for i := range j.Entries {
		if slices.ContainsFunc(j.Entries[i].Results, func(r journal.Result) bool { return r.Written }) {
			n++
		}
	}
	return n
}

// remaining returns what is still to be done of an entry, if anything.
func remaining(e *journal.Entry, index int) (recordedEntry, bool) {
	out := recordedEntry{Entry: e.Entry, journalIndex: index}
	switch e.Status() {
	case journal.Done, journal.Failed:
		return out, false
	case journal.Partial:
		out.Entry = out.StatusPart()
	case journal.InDoubt:
		out.pending = e.Doubt()
		if out.pending.Subresource == request.StatusSubresource && e.Object.Subresource == "" {
			out.Entry = out.StatusPart() // the other part is done
		}
	}
	return out, true
}

// Each calls a function with the planned change of each object, and returns their
// summary.
func (r *RecordedRun) Each(rules []engine.RuleRef, do func(*engine.Change) error) (evaluation.Summary, error) {
	shown := evaluation.NewSummary(rules)
	for i := range r.entries {
		c := r.entries[i].Change()
		shown.Add(&c)
		if err := do(&c); err != nil {
			return *shown, err
		}
	}
	if r.summary != nil {
		shown = r.summary
	}
	return *shown, nil
}

// Tasks returns a task for each entry. The policies are evaluated over the same
// objects again, because an entry is written only if they still make the same change,
// and because it lacks the values of Secrets, which a drift has to mask.
func (r *RecordedRun) Tasks(ctx context.Context, run Evaluation) ([]*Task, error) {
	planned := map[engine.ObjectKey]bool{}
	for i := range r.entries {
		planned[r.entries[i].Object.Named()] = true
	}
	now := map[engine.ObjectKey]*evaluatedTask{}
	_, err := run.Each(ctx, func(c *engine.Change) error {
		if key := c.Subject.Named(); planned[key] {
			now[key] = newEvaluatedTask(run, c)
		}
		return nil
	})
	var tasks []*Task
	for i := range r.entries {
		if e := &r.entries[i]; e.Writes() {
			tasks = append(tasks, e.task(now[e.Object.Named()]))
		}
	}
	return tasks, err
}

// task makes the planned change of one object. Now is nil if the evaluation has not met
// the object again.
func (e *recordedEntry) task(now *evaluatedTask) *Task {
	if now == nil {
		now = &evaluatedTask{}
		now.Task.Change = now.again
	}
	now.incomplete = e.Incomplete()
	t := &now.Task
	t.Key, t.JournalIndex, t.Pending, t.Entry = e.Object, e.journalIndex, e.pending, e.Entry
	planned := e.Change()
	t.Endpoints = endpointsOf(&planned)
	if len(t.Rules) == 0 {
		t.Rules, _ = changing(&planned)
	}
	return t
}
