package apply

import (
	"context"
	"errors"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// RecordedRun is a run whose changes are known before it is evaluated.
type RecordedRun struct {
	plan.Run
	Name    string // for messages: "plan FILE"
	entries *plan.Entries
	records []record // of each entry
	secrets bool     // something was made of a Secret, perhaps of what has its result already
	// summary is that of the evaluation when a plan was made; nil counts the entries.
	summary *evaluation.Summary
	// Written and Failed count the entries that have a result already.
	Written, Failed int
}

// record is what is known of an object that is still to be written beside its entry. There may be very many.
type record struct {
	// again is the same change as the policies make it now: what is shown beside its fields, such as
	// its impacts, is taken from there. It is nil where they make another one. What equals the entry may be left out: its
	// object and its fields.
	again        *plan.Entry
	journalIndex int
	// pending is a write that was started and whose outcome is unknown; nil if there is
	// none.
	pending *journal.Attempt
}

// FromPlan returns all of a plan that was read from a file.
func FromPlan(p *plan.Plan, file string) *RecordedRun {
	return &RecordedRun{
		Run: p.Run, Name: "plan " + file, summary: &p.Summary, entries: p.Entries, records: make([]record, p.Entries.Len()), secrets: p.Entries.HoldSecrets(),
	}
}

// FromJournal returns what is left of an interrupted run: entries with a result are
// skipped, planned ones are written as from a plan, and started ones are looked up
// first. The error is that of a temporary file.
func FromJournal(j *journal.Journal) (*RecordedRun, error) {
	r := &RecordedRun{
		Run: j.Header.Run, Name: "journal " + j.Path, entries: &plan.Entries{}, secrets: j.HoldsSecrets(),
		Written: written(j), Failed: j.Count()[journal.Failed],
	}
	for i := range j.Entries {
		switch j.Entries[i].Status() {
		case journal.Done, journal.Failed:
			continue
		}
		e, err := j.Planned(i)
		if err != nil {
			return nil, err
		}
		pending := j.Entries[i].Doubt()
		e = remaining(e, j.Entries[i].Status(), pending)
		r.entries.Add(&e)
		r.records = append(r.records, record{journalIndex: i, pending: pending})
	}
	return r, nil
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

// remaining is what is still to be done of an entry that is not done. Pending is a write of it whose outcome is unknown; nil if
// there is none.
func remaining(e plan.Entry, status journal.Status, pending *journal.Attempt) plan.Entry {
	objectDone := status == journal.Partial || pending != nil && pending.Subresource == request.StatusSubresource && e.Object.Subresource == ""
	if objectDone {
		return e.StatusPart()
	}
	return e
}

// Each calls a function with the planned change of each object, and returns their
// summary. After Tasks, all but the fields of a change is of the evaluation that Tasks made, since
// nothing of it in the file is what is checked before a write.
func (r *RecordedRun) Each(rules []engine.RuleRef, do func(*engine.Change) error) (evaluation.Summary, error) {
	summary := evaluation.NewSummary(rules)
	summary.Objects = r.entries.Len()
	if r.summary != nil {
		summary.Objects, summary.Canary = r.summary.Objects, r.summary.Canary
		summary.Rules = slices.DeleteFunc(slices.Clone(r.summary.Rules), func(s evaluation.RuleSummary) bool { return !slices.Contains(rules, s.Rule) })
	}
	var failed error
	counted := summary.Recounted(func(yield func(*engine.Change) bool) {
		i := 0
		for e, err := range r.entries.All() {
			if failed = err; failed != nil {
				return
			}
			c := r.records[i].shown(e).Change()
			if failed = do(&c); failed != nil || !yield(&c) {
				return
			}
			i++
		}
	})
	if failed != nil {
		return *summary, failed
	}
	return counted, nil
}

// shown returns an entry as it is shown.
func (r *record) shown(e *plan.Entry) *plan.Entry {
	if r.again == nil {
		return e
	}
	again := *r.again
	if again.Object == (engine.ObjectKey{}) {
		again.Object, again.Partial = e.Object, e.Partial
	}
	return &again
}

// Forget lets go of the changes, which tasks have been made of and which have been shown. Further calls do nothing.
func (r *RecordedRun) Forget() error {
	if r == nil {
		return nil
	}
	r.records = nil
	return r.entries.Close()
}

// Tasks has the executor that will run them keep a task for each entry. The policies are evaluated over the same
// objects again, because an entry is written only if they still make the same change,
// and because it lacks the values of Secrets, which a drift has to mask. The masker of the executor is
// that of the evaluation.
func (r *RecordedRun) Tasks(ctx context.Context, run Evaluation, x *Executor) error {
	planned := engine.NewPlaces[engine.ObjectKey]()
	for e, err := range r.entries.All() {
		if err != nil {
			return err
		}
		planned.Add(e.Object.Named())
	}
	if r.secrets { // the request log must not show what an interrupted run has written
		ctx = engine.WithSecret(ctx)
	}
	now := make([]*queued, len(r.records))
	_, err := run.Each(ctx, func(c *engine.Change) error {
		i, is := planned.Of(c.Subject.Named())
		if !is {
			return nil
		}
		e, err := r.entries.At(i)
		if err != nil {
			return err
		}
		if e.Writes() {
			now[i] = r.records[i].queued(x, &e, c, newEvaluatedTask(run, c))
		}
		r.records[i].evaluatedAs(x, &e, c)
		return nil
	})
	for i, q := range now {
		if q == nil {
			e, failed := r.entries.At(i)
			if failed != nil {
				return errors.Join(err, failed)
			}
			if !e.Writes() {
				continue
			}
			q = x.queued(r.records[i].task(&e, &Task{evaluated: &evaluated{}})) // the evaluation has not met it again
		}
		x.queue = append(x.queue, q)
	}
	return err
}

// queued has a task make the planned change of an object that was evaluated again.
func (r *record) queued(x *Executor, e *plan.Entry, c *engine.Change, t *Task) *queued {
	var listed file.Place
	if r.pending == nil {
		listed = x.hold(t, c.Target.Object)
	}
	q := x.queued(r.task(e, t))
	q.listed = listed
	return q
}

// evaluatedAs keeps what the policies make of the object now, if that is what was planned.
func (r *record) evaluatedAs(x *Executor, e *plan.Entry, c *engine.Change) {
	if c.Changed() != e.Writes() || e.Drift(c, x.Masker) != nil {
		return
	}
	again := plan.NewEntry(c)
	r.again = &again
	if c.Shown == nil && again.Object == e.Object && reflect.DeepEqual(again.Partial, e.Partial) {
		again.Object, again.Partial, again.ResourceVersion, again.LastWrite = engine.ObjectKey{}, diff.Partial{}, "", metav1.Time{}
		r.again = &x.shapes.share(taskShape{entry: again}).entry
	}
}

// task has a task make the planned change of one object.
func (r *record) task(e *plan.Entry, t *Task) *Task {
	t.evaluated.incomplete = e.Incomplete()
	entry := *e
	t.Key, t.JournalIndex, t.Pending, t.Entry = e.Object, r.journalIndex, r.pending, &entry
	planned := e.Change()
	t.Endpoints = EndpointsOf(&planned)
	if len(t.Rules) == 0 {
		t.Rules, _ = changing(&planned)
	}
	return t
}
