package apply

import (
	"context"
	"iter"
	"reflect"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// RecordedRun is a run whose changes are known before it is evaluated.
type RecordedRun struct {
	plan.Run
	Name    string // for messages: "plan FILE"
	entries []recordedEntry
	secrets bool // something of it was made of a Secret
	// summary is that of the evaluation when a plan was made; nil counts the entries.
	summary *evaluation.Summary
	// Written and Failed count the entries that have a result already.
	Written, Failed int
}

// recordedEntry is an object that is still to be written.
type recordedEntry struct {
	plan.Entry
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
	r := &RecordedRun{Run: p.Run, Name: "plan " + file, summary: &p.Summary}
	for _, e := range p.Entries {
		r.entries = append(r.entries, recordedEntry{Entry: e})
		r.secrets = r.secrets || e.HoldsSecrets()
	}
	return r
}

// FromJournal returns what is left of an interrupted run: entries with a result are
// skipped, planned ones are written as from a plan, and started ones are looked up
// first.
func FromJournal(j *journal.Journal) *RecordedRun {
	r := &RecordedRun{Run: j.Header.Run, Name: "journal " + j.Path, Written: written(j), Failed: j.Count()[journal.Failed]}
	for i := range j.Entries {
		r.secrets = r.secrets || j.Entries[i].HoldsSecrets()
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
// summary. After Tasks, all but the fields of a change is of the evaluation that Tasks made, since
// nothing of it in the file is what is checked before a write.
func (r *RecordedRun) Each(rules []engine.RuleRef, do func(*engine.Change) error) (evaluation.Summary, error) {
	summary := evaluation.NewSummary(rules)
	summary.Objects = len(r.entries)
	if r.summary != nil {
		summary.Objects, summary.Canary = r.summary.Objects, r.summary.Canary
		summary.Rules = slices.DeleteFunc(slices.Clone(r.summary.Rules), func(s evaluation.RuleSummary) bool { return !slices.Contains(rules, s.Rule) })
	}
	for c := range r.changes() {
		if err := do(c); err != nil {
			return *summary, err
		}
	}
	return summary.Recounted(r.changes()), nil
}

// changes are those of the entries.
func (r *RecordedRun) changes() iter.Seq[*engine.Change] {
	return func(yield func(*engine.Change) bool) {
		for i := range r.entries {
			e := &r.entries[i].Entry
			if again := r.entries[i].again; again != nil {
				e = again
			}
			if c := e.Change(); !yield(&c) {
				return
			}
		}
	}
}

// Forget lets go of the changes, which tasks have been made of and which have been shown.
func (r *RecordedRun) Forget() { r.entries = nil }

// Tasks has the executor that will run them keep a task for each entry. The policies are evaluated over the same
// objects again, because an entry is written only if they still make the same change,
// and because it lacks the values of Secrets, which a drift has to mask. The masker of the executor is
// that of the evaluation.
func (r *RecordedRun) Tasks(ctx context.Context, run Evaluation, x *Executor) error {
	planned := map[engine.ObjectKey]*recordedEntry{}
	for i := range r.entries {
		planned[r.entries[i].Object.Named()] = &r.entries[i]
	}
	if r.secrets { // the request log must not show what an interrupted run has written
		ctx = engine.WithSecret(ctx)
	}
	type known struct {
		*Task
		listed file.Place
	}
	now := map[engine.ObjectKey]known{}
	_, err := run.Each(ctx, func(c *engine.Change) error {
		if key := c.Subject.Named(); planned[key] != nil {
			k := known{Task: newEvaluatedTask(run, c)}
			if planned[key].pending == nil {
				k.listed = x.hold(k.Task, c.Target.Object)
			}
			now[key] = k
			planned[key].evaluatedAs(c, x.Masker)
		}
		return nil
	})
	for i := range r.entries {
		if e := &r.entries[i]; e.Writes() {
			k := now[e.Object.Named()]
			x.add(e.task(k.Task)).listed = k.listed
		}
	}
	return err
}

// evaluatedAs keeps what the policies make of the object now, if that is what was planned.
func (e *recordedEntry) evaluatedAs(c *engine.Change, m *redact.Masker) {
	if c.Changed() == e.Writes() && e.Drift(c, m) == nil {
		again := plan.NewEntry(c)
		if reflect.DeepEqual(again.Partial, e.Partial) {
			again.Partial = e.Partial // but once in memory
		}
		e.again = &again
	}
}

// task has a task make the planned change of one object. It is nil if the evaluation has not met
// the object again.
func (e *recordedEntry) task(t *Task) *Task {
	if t == nil {
		t = &Task{evaluated: &evaluated{}}
	}
	t.evaluated.incomplete = e.Incomplete()
	entry := e.Entry
	t.Key, t.JournalIndex, t.Pending, t.Entry = e.Object, e.journalIndex, e.pending, &entry
	planned := e.Change()
	t.Endpoints = EndpointsOf(&planned)
	if len(t.Rules) == 0 {
		t.Rules, _ = changing(&planned)
	}
	return t
}
