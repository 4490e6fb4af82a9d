package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	records []record
	secrets bool // something was made of a Secret, perhaps of what has its result already
	// summary is that of the evaluation when a plan was made; nil counts the entries.
	summary *evaluation.Summary
	// Written and Failed count the entries that have a result already.
	Written, Failed int
}

// record is an object that is still to be written.
type record struct {
	*plan.Entry
	// again is the same change as the policies make it now: what is shown beside its fields, such as
	// its impacts, is taken from there. It is nil where they make another one.
	again        *plan.Entry
	journalIndex int
	// pending is a write that was started and whose outcome is unknown; nil if there is
	// none.
	pending *journal.Attempt
}

// FromPlan returns all of a plan that was read from a file.
func FromPlan(p *plan.Plan, file string) *RecordedRun {
	r := &RecordedRun{Run: p.Run, Name: "plan " + file, summary: &p.Summary, secrets: p.HoldsSecrets()}
	for _, e := range p.Entries {
		r.records = append(r.records, record{Entry: e})
	}
	return r
}

// FromJournal returns what is left of an interrupted run: entries with a result are
// skipped, planned ones are written as from a plan, and started ones are looked up
// first.
func FromJournal(j *journal.Journal) *RecordedRun {
	r := &RecordedRun{
		Run: j.Header.Run, Name: "journal " + j.Path, secrets: j.HoldsSecrets(),
		Failed: j.Count()[journal.Failed],
	}
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Wrote() {
			r.Written++
		}
		status := e.Status()
		if status == journal.Done || status == journal.Failed {
			continue
		}
		pending := e.Doubt()
		r.records = append(r.records, record{Entry: remaining(e.Entry, status, pending), journalIndex: i, pending: pending})
	}
	return r
}

// remaining is what is still to be done of an entry that is not done. Pending is a write of it whose outcome is unknown; nil if
// there is none.
func remaining(e *plan.Entry, status journal.Status, pending *journal.Attempt) *plan.Entry {
	objectDone := status == journal.Partial || pending != nil && pending.Subresource == request.StatusSubresource && e.Object.Subresource == ""
	if objectDone {
		status := e.StatusPart()
		return &status
	}
	return e
}

// Each calls a function with the planned change of each object, and returns their
// summary. After Tasks, all but the fields of a change is of the evaluation that Tasks made, since
// nothing of it in the file is what is checked before a write. They are forgotten: there are tasks of them.
func (r *RecordedRun) Each(rules []engine.RuleRef, do func(*engine.Change) error) (evaluation.Summary, error) {
	summary := evaluation.NewSummary(rules)
	summary.Objects = len(r.records)
	if r.summary != nil {
		summary.Objects, summary.Canary = r.summary.Objects, r.summary.Canary
		summary.Rules = slices.DeleteFunc(slices.Clone(r.summary.Rules), func(s evaluation.RuleSummary) bool { return !slices.Contains(rules, s.Rule) })
	}
	var failed error
	counted := summary.Recounted(func(yield func(*engine.Change) bool) {
		for i := range r.records {
			shown := r.records[i].Entry
			if again := r.records[i].again; again != nil {
				shown = again
			}
			c := shown.Change()
			if failed = do(&c); failed != nil || !yield(&c) {
				return
			}
		}
	})
	if r.records = nil; failed != nil {
		return *summary, failed
	}
	return counted, nil
}

// Tasks has the executor that will run them keep a task for each entry. The policies are evaluated over the same
// objects again, because an entry is written only if they still make the same change,
// and because it lacks the values of Secrets, which a drift has to mask. The masker of the executor is
// that of the evaluation.
func (r *RecordedRun) Tasks(ctx context.Context, run Evaluation, x *Executor) error {
	places := make(map[engine.ObjectKey]int, len(r.records))
	for i := range r.records {
		places[r.records[i].Object.Named()] = i
	}
	if r.secrets { // the request log must not show what an interrupted run has written
		ctx = engine.WithSecret(ctx)
	}
	met := make([]*queued, len(r.records))
	_, err := run.Each(ctx, func(c *engine.Change) error {
		i, is := places[c.Subject.Named()]
		if !is {
			return nil
		}
		if p := &r.records[i]; p.Writes() {
			met[i] = x.queue.hold(p.task(newEvaluatedTask(run, c, p.Incomplete())), c.Target.Object)
		}
		r.records[i].evaluatedAs(x, c)
		return nil
	})
	for i, q := range met {
		if q == nil && r.records[i].Writes() { // the evaluation has not met it again
			q = &queued{Task: r.records[i].task(unmet(r.records[i].Object))}
		}
		if q != nil {
			x.queue.tasks = append(x.queue.tasks, q)
		}
	}
	return err
}

// evaluatedAs keeps what the policies make of the object now, if that is what was planned.
func (r *record) evaluatedAs(x *Executor, c *engine.Change) {
	if c.Changed() == r.Writes() && r.Drift(c, x.Masker) == nil {
		again := plan.NewEntry(c)
		r.again = &again
	}
}

// unmet is the task of an object that the policies do not meet any more.
func unmet(key engine.ObjectKey) *Task {
	return &Task{Change: func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		return &engine.Change{Subject: key, Before: live, After: live}, nil
	}}
}

// task has a task make the planned change of one object.
func (r *record) task(t *Task) *Task {
	entry := *r.Entry
	t.Key, t.JournalIndex, t.Pending, t.Entry = r.Object, r.journalIndex, r.pending, &entry
	planned := r.Change()
	t.Endpoints = EndpointsOf(&planned)
	if len(t.Rules) == 0 {
		t.Rules, _ = changing(&planned)
	}
	return t
}
