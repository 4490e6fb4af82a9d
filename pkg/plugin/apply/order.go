package apply

import (
	"cmp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// arrange brings the tasks that are ready into the order in which they are written: an object whose state
// triggers the changes of others comes after these, since a run that is interrupted and resumed would not find what
// triggered them. In a circle no order is better than another.
func (x *Executor) arrange(ready []*Task) {
	o := order{triggeredBy: map[engine.ObjectKey][]*Task{}, waves: map[*Task]int{}}
	for _, t := range x.tasks {
		for i := range t.Entry.Steps {
			s := &t.Entry.Steps[i]
			if s.Outcome == engine.Changed && s.Trigger != (engine.ObjectKey{}) && s.Trigger.Named() != t.Key.Named() {
				o.triggeredBy[s.Trigger.Named()] = append(o.triggeredBy[s.Trigger.Named()], t)
			}
		}
	}
	if len(o.triggeredBy) == 0 {
		return
	}
	for _, t := range ready {
		t.wave = o.wave(t)
	}
	x.triggeredBy = o.triggeredBy
	slices.SortStableFunc(ready, func(a, b *Task) int { return cmp.Compare(a.wave, b.wave) })
}

// missedTarget returns a task whose change the object triggers, and that was not made; nil if there is none.
func (x *Executor) missedTarget(t *Task) *Task {
	if t.wave == 0 { // it triggers none
		return nil
	}
	triggers := x.triggeredBy[t.Key.Named()]
	if i := slices.IndexFunc(triggers, func(other *Task) bool { return other.wave < t.wave && other.missed }); i >= 0 {
		return triggers[i]
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

// order finds out when tasks have their turn.
type order struct {
	triggeredBy map[engine.ObjectKey][]*Task // the tasks whose changes an object triggers, by Named
	waves       map[*Task]int
}

// wave is 0 for a task that triggers no other one, and else later than all that it triggers.
func (o *order) wave(t *Task) int {
	known, ok := o.waves[t]
	if ok {
		return known
	}
	o.waves[t] = 0 // in a circle
	after := 0
	for _, other := range o.triggeredBy[t.Key.Named()] {
		after = max(after, o.wave(other)+1)
	}
	o.waves[t] = after
	return after
}
