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

// Queue has the tasks of a run, in the order in which they are written, and counts what comes of them.
type Queue struct {
	// Report is called with the result of each object, one after the other, and OnResult before it, with the
	// task too. All but Report may be nil.
	Report   func(*Result) error
	OnResult func(*Task, *Result)
	// NotTried is called at the end of a run that stopped early, for each object that
	// has no result.
	NotTried func(*Result) error
	// ShowDrift shows what was planned and what would be done now.
	ShowDrift func(*plan.Drift) error

	tasks       []*Task
	triggeredBy map[engine.ObjectKey][]*Task // those whose changes an object triggers, by Named
	texts       snapshot.Dictionary          // of the objects that tasks hold
	held        int                          // bytes of these
	tally       Tally
}

// maxHeld is how many bytes the objects of one run take that are held until they are verified.
const maxHeld = 32 << 20

// Keep keeps a task that was made for a change until Run, and the object of that change until it is verified,
// so that it need not be read again. It is not safe for concurrent use.
func (q *Queue) Keep(t *Task, c *engine.Change) {
	q.hold(t, c.Target.Object)
	q.tasks = append(q.tasks, t)
}

// hold holds the object of a task as the run has listed it. What does not fit is not held.
func (q *Queue) hold(t *Task, listed *unstructured.Unstructured) {
	if t.mayUse(listed) && q.held < maxHeld {
		t.listed, _ = q.texts.Pack(listed.Object)
		q.held += len(t.listed)
	}
}

// take returns the object that is held for a task, which holds it no longer; nil if there is none.
func (q *Queue) take(t *Task) *unstructured.Unstructured {
	listed := t.listed
	if t.listed = ""; listed == "" {
		return nil
	}
	object, _ := q.texts.Unpack(listed).(map[string]any)
	return &unstructured.Unstructured{Object: object}
}

// report counts and shows the result of one object.
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
	t.verified = nil // which nothing needs any more
	return q.Report(r)
}

// reportNotTried reports what was verified and has no result.
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

// reportLeft reports what a run that stopped early has left without a result.
func (q *Queue) reportLeft() error {
	var failed error
	for _, t := range q.tasks {
		if !t.reported && q.NotTried != nil {
			failed = errors.Join(failed, q.NotTried(&Result{Key: t.Key, Outcome: NotTried, Rules: t.Rules}))
		}
	}
	return failed
}

// arrange brings the tasks that are ready into the order in which they are written: an object whose state
// triggers the changes of others comes after these, since a run that is interrupted and resumed would not
// find what triggered them. In a circle no order is better than another.
func (q *Queue) arrange(ready []*Task) {
	q.triggeredBy = map[engine.ObjectKey][]*Task{}
	for _, t := range q.tasks {
		for _, s := range t.Entry.Steps {
			if s.Outcome == engine.Changed && s.Trigger != (engine.ObjectKey{}) && s.Trigger.Named() != t.Key.Named() {
				q.triggeredBy[s.Trigger.Named()] = append(q.triggeredBy[s.Trigger.Named()], t)
			}
		}
	}
	waves := map[*Task]int{}
	for _, t := range ready {
		t.wave = q.wave(t, waves)
	}
	slices.SortStableFunc(ready, func(a, b *Task) int { return cmp.Compare(a.wave, b.wave) })
}

// wave is 0 for a task that triggers no other one, and else later than all that it triggers. Known are those
// of other tasks.
func (q *Queue) wave(t *Task, known map[*Task]int) int {
	if wave, ok := known[t]; ok {
		return wave
	}
	known[t] = 0 // in a circle
	after := 0
	for _, other := range q.triggeredBy[t.Key.Named()] {
		after = max(after, q.wave(other, known)+1)
	}
	known[t] = after
	return after
}

// missedTarget returns a task whose change the object triggers, and that was not made; nil if there is none.
func (q *Queue) missedTarget(t *Task) *Task {
	for _, other := range q.triggeredBy[t.Key.Named()] {
		if other.wave < t.wave && other.missed {
			return other
		}
	}
	return nil
}

// batches divides arranged tasks into those that are written together, at most size of them.
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
