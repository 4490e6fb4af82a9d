// Package watch follows a cluster: its changes become events, which are evaluated as the admission requests
// that they were.
//
// A Follower lists a resource, watches it from there, and finds with another listing what a broken watch has
// missed. It keeps the versions and digests of objects, and their last state if rules ask for it. Its events
// go through a Queue, which joins the events of an object and blocks followers when it is full, so that
// memory does not grow with the number of changes. A Source passes events to an evaluation.
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

// Event is one change of an object, or several in a row that are evaluated together.
type Event struct {
	Mapping   *meta.RESTMapping
	Operation engine.Operation
	Key       engine.ObjectKey
	Time      time.Time                  // of the last change
	Object    *unstructured.Unstructured // the last state, even if deleted
	// Old is the object before an update, if rules ask for it.
	Old *unstructured.Unstructured
	// Left has the changes that an earlier evaluation of the event left, by the objects to change: it makes no
	// other changes. Nil before.
	Left map[engine.ObjectKey]Left
	// Target makes the object be evaluated as a target of rules that others trigger.
	Target bool

	tries int       // evaluations that left something
	due   time.Time // for the next try
}

// join adds a later event of the same object. An object that was created and then changed was created; one
// that is deleted was deleted, whatever happened before.
func (e *Event) join(later *Event) {
	e.Object, e.Time, e.Mapping = later.Object, later.Time, later.Mapping
	switch {
	case later.Operation == engine.OperationDelete:
		e.Operation, e.Old = later.Operation, nil
	case e.Operation == engine.OperationUpdate:
		e.Old = cmp.Or(e.Old, later.Old)
	}
}

// MaxEvents is the capacity of a Queue.
const MaxEvents = 1000

// Queue holds events to be evaluated, one for each object, in the order of their first changes. It is safe
// for concurrent use. The zero value is empty.
type Queue struct {
	mu      sync.Mutex
	changed sync.Cond // something was put or taken
	order   []*Event
	pending map[types.UID]*Event
	later   []*Event // to be retried
	taken   []*Event // retried events being evaluated
	leftBy  bool     // the last taken events were retried
}

// Put adds an event, or joins it to the event of the same object. It blocks while the queue is full; the
// error is the context's.
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

// add adds an event, or joins it to the event of the same object.
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

// wait waits for ready, which is called with the lock held.
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

// Wait waits for an event, or for one to be due, and returns the time of the last change of the first
// object.
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

// Take takes the first events, at most so many; it may be none. Events to be retried take turns with the
// others once they are due.
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
		q.order = nil // frees its capacity
	}
	for _, e := range out {
		delete(q.pending, e.Object.GetUID())
		q.forgetRefused(e.Key.UID)
	}
	q.changed.L = &q.mu
	q.changed.Broadcast()
	return out
}

// Return puts taken events back, before all others, and joins later events of their objects to them.
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

// Len returns the number of events.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order)
}

// ForTarget returns an event that changes only its own object, as a target of rules that others trigger.
func (e *Event) ForTarget() *Event {
	out := *e
	out.Target, out.Left = true, map[engine.ObjectKey]Left{e.Key.Whole(): {Key: e.Key}}
	return &out
}

// Source is an engine.Source of the objects of events, with their requests, for one evaluation.
type Source struct {
	Events []*Event
	Scope  engine.Scope // of the objects; its request has the user
	World  *engine.World
	// Live, in a source of triggers, has all objects that others may make triggers: from the second time on it
	// is read, with the events in it. A source without it has no deleted objects.
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
	ctx    context.Context // of the listing, which outlives the page
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
		// Rules that need the Namespace report its errors.
		t.Namespace, _ = s.World.ReadNamespace(ctx, ns)
	}
	return t
}

// over streams the live objects, with those of events as they were requested.
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
