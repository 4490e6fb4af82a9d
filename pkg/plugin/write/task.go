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

// Task is an object to write.
type Task struct {
	Key engine.ObjectKey
	// Change returns the change for the current object, which is written only if it equals the shown one. It is
	// called for the verification, and again if another writer was faster, but never concurrently.
	Change func(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error)
	// Entry is the shown change, as recorded in the journal.
	Entry *plan.Entry
	// Rules are the rules that change the object, and Propagated those triggered by another object; each once.
	Rules, Propagated []engine.RuleRef
	// Secrets are the fields that an earlier run derived from a Secret, besides those of the Entry. Results and
	// the request log redact them.
	Secrets []engine.FieldChange
	// Autoscaled names the autoscalers that set the changed fields.
	Autoscaled []engine.Impact
	// Endpoints are the subresources to which its fields are written, as far as known; "" is the object itself.
	Endpoints []string
	// JournalIndex is its index in a resumed journal, and Pending its write whose outcome the journal lacks; nil
	// if there is none.
	JournalIndex int
	Pending      *journal.Attempt
	// unmade is the record of a change that was not made, until there is a journal.
	unmade *journal.Result

	// again is the change as evaluated now, for the parts shown besides its fields, such as its impacts. It is
	// nil if the change differs.
	again    *plan.Entry
	listed   snapshot.Value  // the object as listed, until it is verified
	wave     int             // of the write order
	managed  bool            // the user was shown that something else manages the object
	impacts  []engine.Impact // as shown to the user
	missed   bool            // its change should have been made, but was not
	reported bool
	// the Pending write may have been stored: the object has changed, and some values are unknown
	unsure   bool
	made     bool // an earlier run of the plan wrote it
	verified *Verified
	stored   *Result // of the object itself, if its /status is not written
}

// secrets are the fields of the object known to be derived from a Secret.
func (t *Task) secrets() []engine.FieldChange { return append(t.Entry.Secrets(), t.Secrets...) }

// want is the Want of a task: the change for the current object, if it equals the shown one with the same
// fields and the same values before and after. Otherwise the error is a *plan.Drift.
func (t *Task) want(ctx context.Context, live *unstructured.Unstructured, endpoint string) (
	*unstructured.Unstructured, error,
) {
	now, err := t.Change(ctx, live)
	switch {
	case err != nil:
		return nil, err
	case t.unsure && t.isMet(now), t.made && !now.Changed():
		return live, nil // the write with an unrecorded outcome was stored
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
		entry := plan.NewEntry(now).Sharing(t.Entry) // with the values that files omit
		t.Entry = &entry
		t.Rules, t.Propagated = changingRules(now)
	}
	return now.After, nil
}

// isMet reports whether the rules of a task leave the object unchanged. A rule that no longer matches does
// not count.
func (t *Task) isMet(now *engine.Change) bool {
	return !now.Changed() && !slices.ContainsFunc(t.Rules, func(r engine.RuleRef) bool {
		return !slices.ContainsFunc(now.Steps, func(s engine.Step) bool {
			return s.Rule == r && (s.Outcome == engine.Unchanged || s.Outcome == engine.Skipped)
		})
	})
}

// mayUse reports whether a request for the listed object has the same API version, and is rejected if the
// object has changed since. A change of only the status sends no request to the object itself.
func (t *Task) mayUse(u *unstructured.Unstructured) bool {
	return u != nil && t.Key.Subresource == "" && t.Pending == nil &&
		!slices.Contains(t.Endpoints, request.StatusSubresource) &&
		u.GroupVersionKind() == t.Key.GroupVersionKind() && u.GetUID() != "" && u.GetResourceVersion() != ""
}

// isShownManaged reports whether the change was shown as one of a managed object.
func (t *Task) isShownManaged() bool {
	return slices.ContainsFunc(t.Entry.Impacts, func(i engine.Impact) bool {
		return i.Code == engine.ImpactManaged
	})
}

// Evaluation evaluates the policies of a run.
type Evaluation interface {
	// Each evaluates every object of the run once, and calls emit with each change.
	Each(ctx context.Context, emit func(*engine.Change) error) (evaluation.Summary, error)
	// Evaluate evaluates the current state of one object. Scoped includes the rules that match the object
	// itself.
	Evaluate(ctx context.Context, t engine.Target, scoped bool) (*engine.Change, error)
}

// NewTask returns the task for a change that was evaluated and shown.
func NewTask(r Evaluation, c *engine.Change) *Task {
	entry := plan.NewEntry(c)
	t := &Task{Key: c.Target.Key, Entry: &entry, Endpoints: EndpointsOf(c)}
	t.evaluate(r, c, c.Incomplete())
	return t
}

// errChanged reports that another client has written the object since it was shown.
var errChanged = errors.New("the object has changed")

// evaluate makes a task evaluate its object again without holding it. Incomplete reports that a rule had
// already failed when the change was shown.
func (t *Task) evaluate(r Evaluation, c *engine.Change, incomplete bool) {
	version, scoped := c.Target.Key.Version, c.Scoped
	namespace, mapping, asked := c.Target.Namespace, c.Target.Mapping, c.Target.Request
	var old *unstructured.Unstructured
	if c.Target.OldObject != c.Target.Object {
		old = c.Target.OldObject // of the request
	}
	t.Change = func(ctx context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		target := engine.Target{
			Key: t.Key, Object: live, OldObject: old, Namespace: namespace, Mapping: mapping, Request: asked,
		}
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

// EndpointsOf returns the endpoints that a change may be sent to.
func EndpointsOf(c *engine.Change) []string {
	var out []string
	for i := range c.Fields {
		out = append(out, request.EndpointOf(c.Fields[i].Path))
	}
	return engine.Distinct(out)
}

// changingRules returns the rules that changed the object, and those triggered by another object, each once.
func changingRules(c *engine.Change) (all, propagated []engine.RuleRef) {
	for _, s := range c.Steps {
		if s.Outcome != engine.Changed {
			continue
		}
		all = append(all, s.Rule)
		if s.TriggeredBy != nil {
			propagated = append(propagated, s.Rule)
		}
	}
	return engine.Distinct(all), engine.Distinct(propagated)
}

// RecordedRun is a run whose changes are known before its evaluation.
type RecordedRun struct {
	plan.Run
	Name  string  // for messages: "plan FILE"
	tasks []*Task // of the remaining objects, also if only shown
	// summary is the summary of the plan's evaluation; nil counts the entries.
	summary *evaluation.Summary
	// Command is the command of the plan.
	Command []string
	// Written and Failed count the entries with a result, and Earlier has these results.
	Written, Failed int
	Earlier         []*Result
	// LeftOut counts the changes that Keep leaves out, and that Tasks leaves out by label.
	LeftOut int
	labels  labels.Selector // of the objects to keep; nil: all
}

// FromPlan returns all changes of a plan that was read from a file.
func FromPlan(p *plan.Plan, file string) *RecordedRun {
	r := &RecordedRun{Run: p.Run, Name: "plan " + file, Command: p.Command, summary: &p.Summary}
	for _, e := range p.Entries {
		r.add(e, 0, nil)
	}
	return r
}

// Keep leaves out objects outside a scope, and returns the others. Tasks applies the scope's Labels.
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

// drop leaves out tasks, and counts the ones that write.
func (r *RecordedRun) drop(out func(*Task) bool) {
	r.tasks = slices.DeleteFunc(r.tasks, func(t *Task) bool {
		leave := out(t)
		if leave && t.Entry.Writes() {
			r.LeftOut++
		}
		return leave
	})
}

// LeaveOut leaves out objects whose writes were undone, as reported by journal.Undone, and returns the ones
// that would be written. Other written objects have their change if the rules leave them unchanged.
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

// FromJournal returns the rest of an interrupted run: entries with a result are skipped, planned ones are
// written as from a plan, and started ones are looked up first.
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

// earlier returns the result of a finished entry.
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

// add adds the task of an entry, assuming that policies no longer make its change.
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

// Each calls a function with the planned change of each object, and returns their summary. After Tasks, only
// the fields of a change are from the file; the rest is from Tasks' evaluation, since a write does not check
// it.
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

// Tasks adds a task for each entry to the queue. It evaluates the policies on the same objects again: an
// entry is written only if its change is still the same, and it lacks the values of Secrets.
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

// Count returns how many objects would be written, with or without managed ones.
func (r *RecordedRun) Count(managed bool) int {
	n := 0
	for _, t := range r.tasks {
		if t.Entry.Writes() && (managed || !t.isShownManaged()) {
			n++
		}
	}
	return n
}
