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
	Name    string  // for messages: "plan FILE"
	tasks   []*Task // of the objects that are left, those too that are only shown
	secrets bool    // something was made of a Secret, perhaps of what has its result already
	// summary is that of the evaluation when a plan was made; nil counts the entries.
	summary *evaluation.Summary
	// Written and Failed count the entries that have a result already.
	Written, Failed int
}

// FromPlan returns all of a plan that was read from a file.
func FromPlan(p *plan.Plan, file string) *RecordedRun {
	r := &RecordedRun{Run: p.Run, Name: "plan " + file, summary: &p.Summary, secrets: p.HoldsSecrets()}
	for _, e := range p.Entries {
		r.add(e, 0, nil)
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
		left, pending := e.Entry, e.Doubt()
		if status == journal.Partial || pending != nil && pending.Subresource == request.StatusSubresource && e.Object.Subresource == "" {
			part := e.StatusPart() // the object itself is done
			left = &part
		}
		r.add(left, i, pending)
	}
	return r
}

// add adds the task of an entry, as one that the policies do not meet any more.
func (r *RecordedRun) add(e *plan.Entry, journalIndex int, pending *journal.Attempt) {
	planned := e.Change()
	t := &Task{Key: e.Object, Entry: e, JournalIndex: journalIndex, Pending: pending, Endpoints: EndpointsOf(&planned)}
	t.Rules, _ = changing(&planned)
	t.Change = func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		return &engine.Change{Subject: e.Object, Before: live, After: live}, nil
	}
	r.tasks = append(r.tasks, t)
}

// Each calls a function with the planned change of each object, and returns their
// summary. After Tasks, all but the fields of a change is of the evaluation that Tasks made, since
// nothing of it in the file is what is checked before a write.
func (r *RecordedRun) Each(rules []engine.RuleRef, do func(*engine.Change) error) (evaluation.Summary, error) {
	summary := evaluation.NewSummary(rules)
	summary.Objects = len(r.tasks)
	if r.summary != nil {
		summary.Objects, summary.Canary = r.summary.Objects, r.summary.Canary
		summary.Rules = slices.DeleteFunc(slices.Clone(r.summary.Rules), func(s evaluation.RuleSummary) bool { return !slices.Contains(rules, s.Rule) })
	}
	var failed error
	counted := summary.Recounted(func(yield func(*engine.Change) bool) {
		for _, t := range r.tasks {
			shown := t.Entry
			if t.again != nil {
				shown, t.again = t.again, nil
			}
			c := shown.Change()
			if failed = do(&c); failed != nil || !yield(&c) {
				return
			}
		}
	})
	if failed != nil {
		return *summary, failed
	}
	return counted, nil
}

// Tasks has the executor that will run them keep a task for each entry. The policies are evaluated over the same
// objects again, because an entry is written only if they still make the same change,
// and because it lacks the values of Secrets.
func (r *RecordedRun) Tasks(ctx context.Context, run Evaluation, x *Executor) error {
	places := make(map[engine.ObjectKey]*Task, len(r.tasks))
	for _, t := range r.tasks {
		places[t.Key.Named()] = t
		if t.Entry.Writes() {
			x.tasks = append(x.tasks, t)
		}
	}
	if r.secrets { // the request log must not show what an interrupted run has written
		ctx = engine.WithSecret(ctx)
	}
	_, err := run.Each(ctx, func(c *engine.Change) error {
		t := places[c.Subject.Named()]
		if t == nil {
			return nil
		}
		planned := t.Rules
		if t.evaluate(run, c, t.Entry.Incomplete()); len(t.Rules) == 0 {
			t.Rules = planned
		}
		if t.Entry.Writes() {
			x.hold(t, c.Target.Object)
		}
		if c.Changed() == t.Entry.Writes() && t.Entry.Drift(c) == nil {
			again := plan.NewEntry(c)
			t.again = &again
		}
		return nil
	})
	return err
}

// Count returns how many objects would be written, with those that something else manages or without.
func (r *RecordedRun) Count(managed bool) int {
	n := 0
	for _, t := range r.tasks {
		if t.Entry.Writes() && (managed || !t.isShownManaged()) {
			n++
		}
	}
	return n
}
