package write

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Queue holds the tasks of a run in write order, and counts their results.
type Queue struct {
	// Report is called with the result of each object, one at a time, and OnResult before it, with the task. All
	// callbacks except Report may be nil.
	Report   func(*Result) error
	OnResult func(*Task, *Result)
	// NotTried is called at the end of a run that stopped early, for each object without a result.
	NotTried func(*Result) error
	// ShowDrift shows the planned change and the current one.
	ShowDrift func(*plan.Drift) error

	tasks       []*Task
	triggeredBy map[engine.ObjectKey][]*Task // tasks triggered by an object, by Named
	texts       snapshot.Dictionary          // of the held objects
	held        int                          // their bytes
	tally       Tally
}

// maxHeld is the limit of bytes for objects held until their verification.
const maxHeld = 32 << 20

// Keep adds a task for Run, and holds the change's object until its verification, so that it is not read
// again. It is not safe for concurrent use.
func (q *Queue) Keep(t *Task, c *engine.Change) {
	q.hold(t, c.Target.Object)
	if n := len(q.tasks); n > 0 {
		*t.Entry = t.Entry.Sharing(q.tasks[n-1].Entry)
	}
	q.tasks = append(q.tasks, t)
}

// hold holds the listed object of a task if it fits.
func (q *Queue) hold(t *Task, listed *unstructured.Unstructured) {
	if t.mayUse(listed) && q.held < maxHeld {
		t.listed, _ = q.texts.Pack(listed.Object)
		q.held += len(t.listed)
	}
}

// take returns and releases the held object of a task, or nil.
func (q *Queue) take(t *Task) *unstructured.Unstructured {
	listed := t.listed
	if t.listed = ""; listed == "" {
		return nil
	}
	object, _ := q.texts.Unpack(listed).(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// report counts and shows the result of an object.
func (q *Queue) report(t *Task, r *Result) error {
	r.Rules, r.Autoscaled, t.reported = t.Rules, t.Autoscaled, true
	t.missed = r.misses() || r.Status != nil && r.Status.misses()
	r.Secrets = t.secrets()
	if managed := (*ManagedError)(nil); errors.As(r.Err, &managed) {
		for i := range t.impacts {
			if t.impacts[i].Owner == managed.By {
				managed.Source = cmp.Or(t.impacts[i].Source, managed.Source)
			}
		}
	}
	q.tally.add(r, t.managed)
	var drift *plan.Drift
	if errors.As(r.Err, &drift) && q.ShowDrift != nil {
		if err := q.ShowDrift(drift); err != nil {
			return err
		}
	}
	if q.OnResult != nil {
		q.OnResult(t, r)
	}
	t.verified = nil // no longer needed
	return q.Report(r)
}

// reportNotTried reports verified tasks without a result.
func (q *Queue) reportNotTried(ready []*Task) error {
	for _, t := range ready {
		if t.reported {
			continue
		}
		r := t.verified.Result
		r.Outcome = NotTried
		if t.stored != nil {
			status := Result{
				Key: t.Key, Method: r.Method, Outcome: NotTried,
				Err: errors.New("the server did not answer any more when the status was to be written: continue with --resume"),
			}
			r = *t.stored
			r.Status = &status
		}
		if err := q.report(t, &r); err != nil {
			return err
		}
	}
	return nil
}

// reportLeft reports the tasks without a result of a run that stopped early.
func (q *Queue) reportLeft() error {
	var failed error
	for _, t := range q.tasks {
		if !t.reported && q.NotTried != nil {
			failed = errors.Join(failed, q.NotTried(&Result{Key: t.Key, Outcome: NotTried, Rules: t.Rules}))
		}
	}
	return failed
}

// arrange sorts the ready tasks in write order: an object that triggers changes of others is written after
// these, since a resumed run would otherwise not find the trigger. Cycles have no best order.
func (q *Queue) arrange(ready []*Task) {
	q.triggeredBy = map[engine.ObjectKey][]*Task{}
	for _, t := range q.tasks {
		for _, s := range t.Entry.Steps {
			if s.Outcome == engine.Changed && s.TriggeredBy != nil && s.Trigger().Named() != t.Key.Named() {
				q.triggeredBy[s.Trigger().Named()] = append(q.triggeredBy[s.Trigger().Named()], t)
			}
		}
	}
	waves := map[*Task]int{}
	for _, t := range ready {
		t.wave = q.wave(t, waves)
	}
	slices.SortStableFunc(ready, func(a, b *Task) int { return cmp.Compare(a.wave, b.wave) })
}

// wave is 0 for a task that triggers no other, and else higher than all tasks that it triggers. known has the
// waves of other tasks.
func (q *Queue) wave(t *Task, known map[*Task]int) int {
	if wave, ok := known[t]; ok {
		return wave
	}
	known[t] = 0 // in a cycle
	after := 0
	for _, other := range q.triggeredBy[t.Key.Named()] {
		after = max(after, q.wave(other, known)+1)
	}
	known[t] = after
	return after
}

// missedTarget returns a task that the object triggers and whose change was not made, or nil.
func (q *Queue) missedTarget(t *Task) *Task {
	for _, other := range q.triggeredBy[t.Key.Named()] {
		if other.wave < t.wave && other.missed {
			return other
		}
	}
	return nil
}

// batches divides arranged tasks into batches of at most size.
func batches(tasks []*Task, size int) [][]*Task {
	var out [][]*Task
	for len(tasks) > 0 {
		n := slices.IndexFunc(tasks, func(t *Task) bool { return t.wave != tasks[0].wave })
		if n < 0 {
			n = len(tasks)
		}
		n = min(n, size)
		out, tasks = append(out, tasks[:n:n]), tasks[n:]
	}
	return out
}
