package write

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// Task is one object that is to be written.
type Task struct {
	Key engine.ObjectKey
	// Change returns what would be done to the object as it is now. It is written only if it is what was
	// shown. It is called when the object is verified, and again when another writer was faster; never twice
	// at the same time.
	Change func(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error)
	// Entry is what was shown, and what the journal records.
	Entry *plan.Entry
	// Rules are those that change the object, and Propagated those of them that
	// another object triggered; each once.
	Rules, Propagated []engine.RuleRef
	// Secrets are fields that an earlier run made of a Secret, besides those of the Entry. Results and the
	// request log leave them out.
	Secrets []engine.FieldChange
	// Autoscaled names the autoscalers that set the changed fields.
	Autoscaled []engine.Impact
	// Endpoints are the subresources that its fields are written to, as far as is
	// known; "" is the object itself.
	Endpoints []string
	// JournalIndex is its place in a resumed journal, and Pending the write of it whose
	// outcome that journal does not have; nil if there is none.
	JournalIndex int
	Pending      *journal.Attempt
	// unmade is the record of a change that was not made, and has no journal yet.
	unmade *journal.Result

	// again is the same change as the policies make it now: what is shown besides its fields, such as
	// its impacts, is taken from there. It is nil where they make another one.
	again    *plan.Entry
	listed   snapshot.Value  // the object as it was listed, until it is verified
	wave     int             // in which it is written
	managed  bool            // something else manages the object, as the user was shown
	impacts  []engine.Impact // as the user was shown them
	missed   bool            // its change was not made, and should have been
	reported bool
	// the Pending write may have been stored: the object has changed, and values of it are not known
	unsure   bool
	made     bool // an earlier run of the plan wrote it
	verified *Verified
	stored   *Result // of the object itself, where its /status is left
}

// secrets are the fields of the object that were made of a Secret, as far as is known.
func (t *Task) secrets() []engine.FieldChange { return append(t.Entry.Secrets(), t.Secrets...) }

// want is the Want of a task: the change that is made of the object as it is now, if
// it is the one that was shown: the same fields, the same values before and after.
// The error is a *plan.Drift if it is not.
func (t *Task) want(ctx context.Context, live *unstructured.Unstructured, endpoint string) (
	*unstructured.Unstructured, error,
) {
	now, err := t.Change(ctx, live)
	switch {
	case err != nil:
		return nil, err
	case t.unsure && t.isMet(now), t.made && !now.Changed():
		return live, nil // the write, whose outcome may not be recorded, was stored
	}
	shown, made := *t.Entry, now
	if endpoint == request.StatusSubresource {
		shown, made = shown.StatusPart(), plan.StatusPart(now)
	}
	if drift := shown.Drift(made); drift != nil {
		if !now.Changed() && now.Ignored() {
			return nil, errIgnored
		}
		return nil, drift
	}
	if endpoint == "" && now.Changed() {
		entry := plan.NewEntry(now) // with the values that files withhold
		t.Entry = &entry
		t.Rules, t.Propagated = changingRules(now)
	}
	return now.After, nil
}

// isMet reports whether the rules of a task leave the object as it is. One that does not match it any more
// says nothing about that.
func (t *Task) isMet(now *engine.Change) bool {
	return !now.Changed() && !slices.ContainsFunc(t.Rules, func(r engine.RuleRef) bool {
		return !slices.ContainsFunc(now.Steps, func(s engine.Step) bool {
			return s.Rule == r && (s.Outcome == engine.Unchanged || s.Outcome == engine.Skipped)
		})
	})
}

// mayUse reports whether a request that is made of the object as it was listed is refused where the object
// has changed since, and is for the same version. A change of the status alone makes no request of the object
// itself.
func (t *Task) mayUse(u *unstructured.Unstructured) bool {
	return u != nil && t.Key.Subresource == "" && t.Pending == nil &&
		!slices.Contains(t.Endpoints, request.StatusSubresource) &&
		u.GroupVersionKind() == t.Key.GroupVersionKind() && u.GetUID() != "" && u.GetResourceVersion() != ""
}

// isShownManaged reports whether the change was shown with the impact that something else manages the object.
func (t *Task) isShownManaged() bool {
	return slices.ContainsFunc(t.Entry.Impacts, func(i engine.Impact) bool {
		return i.Code == engine.ImpactManaged
	})
}

// Evaluation evaluates the policies of a run.
type Evaluation interface {
	// Each evaluates every object of the run, once, and hands over each change.
	Each(ctx context.Context, emit func(*engine.Change) error) (evaluation.Summary, error)
	// Evaluate evaluates one object as it is now. Scoped reports whether the rules
	// that match the object itself are evaluated.
	Evaluate(ctx context.Context, t engine.Target, scoped bool) (*engine.Change, error)
}

// NewTask returns the task for an evaluated change, which has been shown.
func NewTask(r Evaluation, c *engine.Change) *Task {
	entry := plan.NewEntry(c)
	t := &Task{Key: c.Target.Key, Entry: &entry, Endpoints: EndpointsOf(c)}
	t.evaluate(r, c, c.Incomplete())
	return t
}

// errChanged reports that another client has written the object since it was shown.
var errChanged = errors.New("the object has changed")

// evaluate has a task evaluate its object again, which it does not hold, as it was evaluated. Incomplete says
// that a rule had failed already when the change was shown.
func (t *Task) evaluate(r Evaluation, c *engine.Change, incomplete bool) {
	version, scoped := c.Target.Key.Version, c.Scoped
	target := engine.Target{Namespace: c.Target.Namespace, Mapping: c.Target.Mapping, Request: c.Target.Request}
	if c.Target.OldObject != c.Target.Object {
		target.OldObject = c.Target.OldObject // that of a request that was made
	}
	t.Change = func(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		target := target
		target.Key, target.Object = t.Key, live
		target.Key.Version, target.Key.UID = version, cmp.Or(t.Key.UID, live.GetUID())
		if target.Request.Operation != engine.OperationCreate {
			target.OldObject = cmp.Or(target.OldObject, live)
		}
		now, err := r.Evaluate(ctx, target, scoped)
		switch {
		case err != nil:
			return nil, err
		case now.Denied():
			return nil, &ObjectError{Key: t.Key, Err: fmt.Errorf("%w, and admission would refuse it now", errChanged)}
		case now.Incomplete() && !incomplete:
			return nil, &ObjectError{Key: t.Key, Err: fmt.Errorf("%w, and a rule fails on it now; preview it again", errChanged)}
		}
		return now, nil
	}
	t.Rules, t.Propagated = changingRules(c)
	t.Autoscaled = slices.DeleteFunc(slices.Clone(c.Impacts), func(i engine.Impact) bool {
		return i.Code != engine.ImpactAutoscaled
	})
}

// EndpointsOf returns the endpoints to which a change may have to be sent.
func EndpointsOf(c *engine.Change) []string {
	var out []string
	for i := range c.Fields {
		out = append(out, request.EndpointOf(c.Fields[i].Path))
	}
	return engine.Distinct(out)
}

// changingRules returns the rules that changed the object, and those of them that another
// object triggered, each once.
func changingRules(c *engine.Change) (all, propagated []engine.RuleRef) {
	for _, s := range c.Steps {
		if s.Outcome != engine.Changed {
			continue
		}
		all = append(all, s.Rule)
		if s.Trigger != (engine.ObjectKey{}) {
			propagated = append(propagated, s.Rule)
		}
	}
	return engine.Distinct(all), engine.Distinct(propagated)
}

// RecordedRun is a run whose changes are known before it is evaluated.
type RecordedRun struct {
	plan.Run
	Name  string  // for messages: "plan FILE"
	tasks []*Task // of the objects that are left, those too that are only shown
	// summary is that of the evaluation when a plan was made; nil counts the entries.
	summary *evaluation.Summary
	// Command is that of the plan.
	Command []string
	// Written and Failed count the entries that have a result already, and Earlier are these results.
	Written, Failed int
	Earlier         []*Result
	// LeftOut counts the changes that Keep leaves out. Tasks knows those that labels leave out.
	LeftOut int
	labels  labels.Selector // of the objects to keep; nil keeps all
}

// FromPlan returns all of a plan that was read from a file.
func FromPlan(p *plan.Plan, file string) *RecordedRun {
	r := &RecordedRun{Run: p.Run, Name: "plan " + file, Command: p.Command, summary: &p.Summary}
	for _, e := range p.Entries {
		r.add(e, 0, nil)
	}
	return r
}

// Keep leaves out the changes of objects that a scope does not choose, and returns the others, but for its
// Labels, which Tasks compares.
func (r *RecordedRun) Keep(scope *engine.Scope) (kept []engine.ObjectKey) {
	named := *scope
	named.Labels, r.labels, r.summary = nil, scope.Labels, nil
	r.drop(func(t *Task) bool { return !named.Includes(t.Key, nil) })
	for _, t := range r.tasks {
		if t.Entry.Writes() {
			kept = append(kept, t.Key)
		}
	}
	return kept
}

// drop leaves out tasks, and counts those that write.
func (r *RecordedRun) drop(out func(*Task) bool) {
	r.tasks = slices.DeleteFunc(r.tasks, func(t *Task) bool {
		leave := out(t)
		if leave && t.Entry.Writes() {
			r.LeftOut++
		}
		return leave
	})
}

// LeaveOut leaves out objects that earlier runs wrote, as journal.Undone has them, if they were undone, and
// returns those of them that would be written. Where the rules leave one of the others as it is, it has its
// change.
func (r *RecordedRun) LeaveOut(undone map[engine.ObjectKey]bool) (left []engine.ObjectKey) {
	r.tasks = slices.DeleteFunc(r.tasks, func(t *Task) bool {
		reverted, written := undone[t.Key.Named()]
		t.made = written && !reverted
		out := t.Entry.Writes() && reverted
		if out {
			left = append(left, t.Key.Named())
		}
		return out
	})
	return left
}

// FromJournal returns what is left of an interrupted run: entries with a result are
// skipped, planned ones are written as from a plan, and started ones are looked up
// first.
func FromJournal(j *journal.Journal) *RecordedRun {
	r := &RecordedRun{
		Run: j.Header.Run, Name: "journal " + j.Path, Failed: j.Count()[journal.Failed],
	}
	for i := range j.Entries {
		e := &j.Entries[i]
		if e.Wrote() {
			r.Written++
		}
		status := e.Status()
		switch status {
		case journal.Done, journal.Failed:
			r.Earlier = append(r.Earlier, earlier(e))
			continue
		case journal.Superseded:
			continue
		}
		left, pending := e.Entry, e.Doubt()
		if status == journal.Partial || pending != nil && pending.Subresource == request.StatusSubresource &&
			e.Object.Subresource == "" {
			part := e.StatusPart() // the object itself is done
			left = &part
		}
		r.add(left, i, pending)
	}
	return r
}

// earlier returns what came of an entry that is done.
func earlier(e *journal.Entry) *Result {
	last, planned := e.Results[len(e.Results)-1], e.Change()
	out := &Result{
		Key: e.Object, Outcome: Outcome(last.Outcome), Earlier: true, Method: e.Method,
		Secrets: e.Secrets(),
	}
	out.Rules, _ = changingRules(&planned)
	switch {
	case last.Failed:
		out.because(out.Outcome, errors.New(strings.TrimPrefix(last.Error, e.Object.String()+": ")))
	case e.Wrote():
		out.Outcome = Applied
	}
	return out
}

// add adds the task of an entry, as one that the policies do not meet any more.
func (r *RecordedRun) add(e *plan.Entry, journalIndex int, pending *journal.Attempt) {
	planned := e.Change()
	t := &Task{
		Key: e.Object, Entry: e, JournalIndex: journalIndex, Pending: pending,
		Endpoints: EndpointsOf(&planned),
	}
	t.Rules, _ = changingRules(&planned)
	t.Change = func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		return &engine.Change{Subject: e.Object, Before: live, After: live}, nil
	}
	r.tasks = append(r.tasks, t)
}

// Each calls a function with the planned change of each object, and returns their
// summary. After Tasks, all but the fields of a change is of the evaluation that Tasks made, since
// nothing of it in the file is what is checked before a write.
func (r *RecordedRun) Each(rules []engine.RuleRef,
	do func(*engine.Change) error,
) (evaluation.Summary, error) {
	summary := evaluation.NewSummary(rules)
	summary.Objects = len(r.tasks)
	if r.summary != nil {
		summary.Objects, summary.Canary = r.summary.Objects, r.summary.Canary
		summary.Rules = slices.DeleteFunc(slices.Clone(r.summary.Rules), func(s evaluation.RuleSummary) bool {
			return !slices.Contains(rules, s.Rule)
		})
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

// Tasks has the queue that will run them keep a task for each entry. The policies are evaluated over the
// same objects again, because an entry is written only if they still make the same change, and because it
// lacks the values of Secrets.
func (r *RecordedRun) Tasks(ctx context.Context, run Evaluation, q *Queue) error {
	places := make(map[engine.ObjectKey]*Task, len(r.tasks))
	for _, t := range r.tasks {
		places[t.Key.Named()] = t
	}
	chosen := map[*Task]bool{} // by labels
	_, err := run.Each(ctx, func(c *engine.Change) error {
		t := places[c.Subject.Named()]
		if t == nil || r.labels != nil &&
			(c.Target.Object == nil || !r.labels.Matches(labels.Set(c.Target.Object.GetLabels()))) {
			return nil
		}
		chosen[t] = true
		planned := t.Rules
		if t.evaluate(run, c, t.Entry.Incomplete()); len(t.Rules) == 0 {
			t.Rules = planned
		}
		if t.Entry.Writes() {
			q.hold(t, c.Target.Object)
		}
		if c.Changed() == t.Entry.Writes() && t.Entry.Drift(c) == nil {
			again := plan.NewEntry(c)
			t.again = &again
		}
		return nil
	})
	if r.labels != nil {
		r.drop(func(t *Task) bool { return !chosen[t] })
	}
	for _, t := range r.tasks {
		if t.Entry.Writes() {
			q.tasks = append(q.tasks, t)
		}
	}
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
