// Package watch follows a cluster: what changes there becomes events, which are evaluated as the admission
// requests that they were.
//
// A Follower lists a resource, watches it from there, and notices by a new listing what a broken watch has
// missed. Of the objects it keeps versions and digests, and the last state where rules ask for it. Its events
// go through a Queue, which joins those of one object and holds up the followers when it is full: so memory
// does not grow with the number of changes. A Source hands some events to an evaluation.
package watch

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Event is a change of one object, or several in a row that are evaluated as one.
type Event struct {
	Mapping   *meta.RESTMapping
	Operation engine.Operation
	Key       engine.ObjectKey
	Time      time.Time                  // when the last change came
	Object    *unstructured.Unstructured // as it was last, if it is deleted
	// Old is the object before an update, where rules ask for it; else nil.
	Old *unstructured.Unstructured
	// Left has what is left of an event that was evaluated before, by the names of the objects: no other change
	// is made because of it. Nil of one that was not.
	Left map[engine.ObjectKey]Left
	// Target reports that the object is evaluated as one that rules change which others trigger.
	Target bool

	tries int       // that left something
	due   time.Time // when it is to be tried again
}

// join adds a later event of the same object. That it was created and then changed is a creation; an object
// that is deleted is that, whatever was before.
func (e *Event) join(later *Event) {
	e.Object, e.Time, e.Mapping = later.Object, later.Time, later.Mapping
	switch {
	case later.Operation == engine.OperationDelete:
		e.Operation, e.Old = later.Operation, nil
	case e.Operation == engine.OperationUpdate:
		e.Old = cmp.Or(e.Old, later.Old)
	}
}

// MaxEvents is how many events a Queue holds.
const MaxEvents = 1000

// Queue holds events that are not evaluated yet, one for each object, in the order in which the first of each
// came. It is safe for concurrent use. The zero value is empty.
type Queue struct {
	mu      sync.Mutex
	changed sync.Cond // something was put or taken
	order   []*Event
	pending map[types.UID]*Event
	later   []*Event // are evaluated again
	taken   []*Event // those of them that are being evaluated
	leftBy  bool     // the last ones that were taken were such
}

// Put adds an event, or joins it to the one of the same object. It waits while the queue is full, which holds
// up who puts; the error is that of the context.
func (q *Queue) Put(ctx context.Context, e *Event) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.wait(ctx, func() bool {
		return len(q.order) < MaxEvents || q.pending[e.Object.GetUID()] != nil
	}); err != nil {
		return err
	}
	q.add(e)
	q.changed.Broadcast()
	return nil
}

// add adds an event, or joins it to the one of the same object.
func (q *Queue) add(e *Event) {
	uid := e.Object.GetUID()
	if known := q.pending[uid]; known != nil {
		known.join(e)
		return
	}
	if q.pending == nil {
		q.pending = map[types.UID]*Event{}
	}
	q.pending[uid] = e
	q.order = append(q.order, e)
}

// wait waits until ready, which is called with the lock.
func (q *Queue) wait(ctx context.Context, ready func() bool) error {
	q.changed.L = &q.mu
	defer context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})()
	for !ready() && ctx.Err() == nil {
		q.changed.Wait()
	}
	return ctx.Err()
}

// Wait waits until there is an event, or one is due, and returns when the last change of the first object
// came.
func (q *Queue) Wait(ctx context.Context) (time.Time, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = nil
	if err := q.wait(ctx, func() bool { return len(q.order) > 0 || q.due() >= 0 }); err != nil {
		return time.Time{}, err
	}
	if q.turns() {
		return time.Time{}, nil
	}
	return q.order[0].Time, nil
}

// Take takes the first events, at most so many; none if there are none. Those that are evaluated again, once
// they are due, take turns with the others.
func (q *Queue) Take(most int) []*Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leftBy = q.turns(); q.leftBy {
		q.taken = q.takeLater(most)
		return q.taken
	}
	n := min(most, len(q.order))
	out := append([]*Event(nil), q.order[:n]...)
	clear(q.order[:n])
	if q.order = q.order[n:]; len(q.order) == 0 {
		q.order = nil // with what it grew to
	}
	for _, e := range out {
		delete(q.pending, e.Object.GetUID())
		q.forgetRefused(e.Key.UID)
	}
	q.changed.L = &q.mu
	q.changed.Broadcast()
	return out
}

// Return puts events back that were taken, before all others. What came of their objects meanwhile is joined
// to them.
func (q *Queue) Return(events []*Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	later := q.order
	q.order, q.pending = nil, nil
	for _, e := range slices.Concat(events, later) {
		if e.Left != nil {
			q.later = append(q.later, e)
			continue
		}
		q.add(e)
	}
}

// Len returns how many events there are.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order)
}

// ForTarget returns the event as one of what rules change which others trigger: nothing but it is left.
func (e *Event) ForTarget() *Event {
	out := *e
	out.Target, out.Left = true, map[engine.ObjectKey]Left{e.Key.Whole(): {Key: e.Key}}
	return &out
}

// Source is an engine.Source of the objects of events, with the requests that they were. It is used for one
// evaluation.
type Source struct {
	Events []*Event
	Scope  engine.Scope // of what is handed out; its request has the user
	World  *engine.World
	// Live, for the source of triggers, has the objects that others make triggers: it is read from the second
	// time on, with the events in it. Nil for the source of the objects that may change, which has no deleted
	// ones.
	Live engine.Source

	read bool
}

// Pages implements engine.Source.
func (s *Source) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	if s.read && s.Live != nil {
		return s.over(ctx, selections)
	}
	s.read = true
	return func(yield func(engine.Page, error) bool) {
		filter, err := engine.NewObjectFilter(selections, s.Scope)
		if err != nil {
			yield(nil, err)
			return
		}
		p := page{ctx: ctx, source: s}
		for _, e := range s.Events {
			if kind, ok := filter.ForKind(e.Mapping); ok && (kind.Matches(e.Object) || e.Old != nil &&
				kind.Matches(e.Old)) && (s.Live != nil || e.Operation != engine.OperationDelete) {
				p.events = append(p.events, e)
			}
		}
		if len(p.events) > 0 {
			yield(p, nil)
		}
	}
}

// page has the objects of events.
type page struct {
	ctx    context.Context // of the listing, which the page does not outlive
	source *Source
	events []*Event
}

// Len implements engine.Page.
func (p page) Len() int { return len(p.events) }

// Target implements engine.Page.
func (p page) Target(i int) (engine.Target, error) { return p.source.Target(p.ctx, p.events[i]), nil }

// Target returns the object of an event, with its request.
func (s *Source) Target(ctx context.Context, e *Event) engine.Target {
	u := e.Object
	t := engine.Target{
		Key: engine.KeyOf(u), Object: u, OldObject: u, Mapping: e.Mapping,
		Request: s.Scope.Request,
	}
	t.Request.Operation = e.Operation
	switch {
	case e.Operation == engine.OperationCreate:
		t.OldObject = nil
	case e.Old != nil:
		t.OldObject = e.Old
	}
	if ns := u.GetNamespace(); ns != "" {
		// One that cannot be read is reported by the rules that ask for it.
		t.Namespace, _ = s.World.ReadNamespace(ctx, ns)
	}
	return t
}

// over streams the live objects, with those of the events as they were requested.
func (s *Source) over(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return engine.Altered(s.Live, func(ctx context.Context, t engine.Target) engine.Target {
		for _, e := range s.Events {
			if e.Operation != engine.OperationDelete && e.Key.UID == t.Key.UID {
				return s.Target(ctx, e)
			}
		}
		return t
	}).Pages(ctx, selections)
}
