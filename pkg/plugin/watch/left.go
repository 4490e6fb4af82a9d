package watch

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Left is a change that an event causes and that was not made.
type Left struct {
	Key engine.ObjectKey // the object to change
	// Refused is set if it is retried only when the object has another version.
	Refused bool
	Version string
}

// The minimum and maximum delay of a retry; refused changes are checked after the maximum.
const (
	minRetry = time.Second
	maxRetry = 5 * time.Minute
)

// Later queues an event for another evaluation, with a growing delay. An event without Left was not
// evaluated, and comes again as a whole.
func (q *Queue) Later(e *Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	later := *e
	if later.tries++; later.Operation != engine.OperationDelete && later.Left != nil {
		later.Object = nil // it is read again
	}
	delay := maxRetry
	if _, pending := later.count(); pending {
		delay = min(minRetry<<min(later.tries-1, 20), maxRetry)
	}
	delay += rand.N(delay/4 + 1)
	later.due = time.Now().Add(delay)
	i := slices.IndexFunc(q.later, func(o *Event) bool {
		return o.Key.UID == e.Key.UID && o.Operation == e.Operation && o.Target == e.Target &&
			o.Left != nil && e.Left != nil
	})
	if i < 0 {
		q.later = append(q.later, &later)
	} else {
		maps.Copy(q.later[i].Left, later.Left)
		if later.due.Before(q.later[i].due) {
			q.later[i].due = later.due
		}
	}
	time.AfterFunc(delay, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})
}

// Tries returns the number of earlier evaluations that left something.
func (e *Event) Tries() int { return e.tries }

// due returns the index of an event that is due for a retry, or -1.
func (q *Queue) due() int {
	now := time.Now()
	return slices.IndexFunc(q.later, func(e *Event) bool { return !e.due.After(now) })
}

// turns reports whether it is the turn of retried events.
func (q *Queue) turns() bool { return q.due() >= 0 && (!q.leftBy || len(q.order) == 0) }

// takeLater takes an event that is due, and others only if all change only their own objects: otherwise they
// might make more changes than they left.
func (q *Queue) takeLater(most int) []*Event {
	first := q.later[q.due()]
	out := []*Event{first}
	now := time.Now()
	for _, e := range q.later {
		if e != first && len(out) < most && first.own() && e.own() && e.Target == first.Target &&
			!e.due.After(now) && !slices.ContainsFunc(out, func(o *Event) bool { return o.Key.UID == e.Key.UID }) {
			out = append(out, e)
		}
	}
	q.later = slices.DeleteFunc(q.later, func(e *Event) bool { return slices.Contains(out, e) })
	return out
}

// own reports whether an event changes only its own object.
func (e *Event) own() bool {
	_, is := e.Left[e.Key.Whole()]
	return is && len(e.Left) == 1 || e.Left == nil
}

// count returns the number of refused changes, and whether others are left.
func (e *Event) count() (refused int, pending bool) {
	for _, l := range e.Left {
		if l.Refused {
			refused++
		}
	}
	return refused, e.Left == nil || refused < len(e.Left)
}

// forgetRefused drops changes that were refused because of an object that is evaluated again; without a UID,
// of all objects.
func (q *Queue) forgetRefused(uid types.UID) {
	for _, e := range q.later {
		if uid == "" || e.Key.UID == uid {
			maps.DeleteFunc(e.Left, func(_ engine.ObjectKey, l Left) bool { return l.Refused })
		}
	}
	q.later = slices.DeleteFunc(q.later, func(e *Event) bool { return e.Left != nil && len(e.Left) == 0 })
}

// ForgetRefused drops all refused changes, since everything is evaluated again.
func (q *Queue) ForgetRefused() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.forgetRefused("")
}

// Left returns the objects whose changes are left, in order: those to be retried, and those that were
// refused.
func (q *Queue) Left() (pending, refused []engine.ObjectKey) {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := map[engine.ObjectKey]bool{} // whether it was refused
	for _, e := range slices.Concat(q.later, q.taken) {
		if e.Target && e.tries == 1 {
			continue // there may be nothing to change
		}
		if e.Left == nil {
			all[e.Key.Whole()] = false
		}
		for k, l := range e.Left {
			is, known := all[k]
			all[k] = l.Refused && (is || !known)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(all), func(a, b engine.ObjectKey) int {
		return cmp.Compare(a.String(), b.String())
	}) {
		if all[k] {
			refused = append(refused, k)
		} else {
			pending = append(pending, k)
		}
	}
	return pending, refused
}

// Renew returns an event with the current state of its object and its remaining changes, nil without either;
// and rest with refused changes of objects that are unchanged. It returns the errors of get.
func (e *Event) Renew(ctx context.Context,
	get func(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error)) (again,
	rest *Event, err error,
) {
	now, still := *e, *e
	if now.Left == nil {
		return &now, nil, nil
	}
	read := func(k engine.ObjectKey) (*unstructured.Unstructured, error) {
		u, err := get(ctx, k)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil, nil
		}
		return u, err
	}
	if now.Object == nil {
		if now.Object, err = read(e.Key); err != nil || now.Object == nil || now.Object.GetUID() != e.Key.UID {
			return nil, nil, err
		}
	}
	now.Left, still.Left = map[engine.ObjectKey]Left{}, map[engine.ObjectKey]Left{}
	for k, l := range e.Left {
		if l.Refused {
			u, err := read(l.Key)
			switch {
			case err != nil:
				return nil, nil, err
			case u == nil:
				continue
			case u.GetResourceVersion() == l.Version:
				still.Left[k] = l
				continue
			}
		}
		now.Left[k] = l
	}
	if len(still.Left) > 0 {
		rest = &still
	}
	if len(now.Left) == 0 {
		return nil, rest, nil
	}
	return &now, rest, nil
}
