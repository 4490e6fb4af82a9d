package apply

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// queued is a task of a run that waits for its turn. There may be very many: what it does not need meanwhile is on disk.
type queued struct {
	*Task // nil at rest, and when it has its result

	namespace, name string
	shape           *taskShape // what others share; nil unless at rest, or when it has its result
	place           file.Place // of what it has alone, at rest
	listed          file.Place // of the object, until it is verified; see Executor.Keep
	source          int        // of the Task
	index           int        // that of the journal
	wave            int        // in which it is written
	managed         bool       // something else manages the object, as the user was shown
	missed          bool       // its change was not made, and should have been
	reported        bool
	secret          bool // something of the object was made of a Secret
}

// maxInMemory is how many bytes of it stay in memory, so that small runs need no file.
const maxInMemory = 1 << 20

// taskShape is what many tasks at rest have in common.
type taskShape struct {
	task     Task // without its Entry, its Change, and what was verified
	entry    plan.Entry
	verified *Verified
}

// rested is what a task has alone: the values that its change is about, and what its request is guarded with.
type rested struct {
	UID       types.UID `json:"uid"`   // of the task
	Shown     string    `json:"shown"` // the version of the object
	LastWrite time.Time `json:"lastWrite"`
	Verified  types.UID `json:"verified"` // the UID of what was verified, and its version
	Version   string    `json:"version"`
	Body      string    `json:"body"`
	// States are those before and after, of each Partial, which often are the same: Which says of each the place among the States.
	States []diff.Part `json:"states"`
	Which  []int       `json:"which"`
}

// rest keeps on disk what a task has alone until wake reads it, and has it share all else. A task stays as it is if that would
// not come out the same, and if its change was made of a Secret. It is not safe for concurrent use.
func (x *Executor) rest(q *queued) {
	text, shape, ok := q.Task.rest()
	if !ok {
		x.share(q.Task)
		return
	}
	q.place, _ = x.store(text)
	q.Task, q.shape = nil, x.shapes.share(shape)
}

// rest returns what a task has alone, and what it may share with others.
func (t *Task) rest() (text []byte, shape taskShape, ok bool) {
	if len(t.secrets()) > 0 || t.Entry.Object != t.Key || t.Pending != nil || t.stored != nil || t.evaluated != nil && t.evaluated.old != nil {
		return nil, shape, false
	}
	r := rested{UID: t.Key.UID, Shown: t.Entry.ResourceVersion, LastWrite: t.Entry.LastWrite.UTC()}
	shape = taskShape{task: *t, entry: *t.Entry}
	shape.task.Key = alike(t.Key)
	shape.task.Entry, shape.task.verified, shape.task.Source, shape.task.JournalIndex = nil, nil, 0, 0
	shape.entry.Object, shape.entry.ResourceVersion, shape.entry.LastWrite = engine.ObjectKey{}, "", metav1.Time{}
	shape.entry.Partial = r.take(shape.entry.Partial)
	if t.verified != nil {
		v := *t.verified
		r.Verified, r.Version, r.Body = v.Key.UID, v.resourceVersion, string(v.patch.Body)
		v.Touched, v.answered, v.effect = r.take(v.Touched), r.take(v.answered), r.take(v.effect)
		if v.Key.UID = t.Key.UID; v.Key != t.Key || v.status != nil {
			return nil, shape, false
		}
		v.Key, v.resourceVersion, v.patch.Body, v.want, v.JournalIndex = engine.ObjectKey{}, "", nil, nil, 0
		shape.verified = &v
	}
	text, err := json.Marshal(r)
	var again rested
	if err != nil || json.Unmarshal(text, &again) != nil || !reflect.DeepEqual(r, again) || !again.restores(t, shape) {
		return nil, shape, false
	}
	return text, shape, true
}

// alike is what the keys of objects of one kind have in common.
func alike(key engine.ObjectKey) engine.ObjectKey {
	key.Namespace, key.Name, key.UID = "", "", ""
	return key
}

// take takes the values of a change.
func (r *rested) take(p diff.Partial) diff.Partial {
	for _, state := range []diff.Part{p.Before, p.After} {
		i := slices.IndexFunc(r.States, func(known diff.Part) bool { return reflect.DeepEqual(known, state) })
		if i < 0 {
			i, r.States = len(r.States), append(r.States, state)
		}
		r.Which = append(r.Which, i)
	}
	fields := slices.Clone(p.Fields)
	for i := range fields {
		fields[i].From, fields[i].To = nil, nil
	}
	return diff.Partial{Fields: fields}
}

// give returns the change whose values were taken first, of those that are left.
func (r *rested) give(p diff.Partial) diff.Partial {
	p.Before, p.After, r.Which = r.States[r.Which[0]], r.States[r.Which[1]], r.Which[2:]
	if p.Fields == nil {
		return p
	}
	return p.WithStates(p.Before, p.After)
}

// restores reports whether the changes of a task come out as they are.
func (r rested) restores(t *Task, shape taskShape) bool {
	same := reflect.DeepEqual(r.give(shape.entry.Partial), t.Entry.Partial)
	if t.verified == nil {
		return same
	}
	for _, p := range [][2]*diff.Partial{
		{&shape.verified.Touched, &t.verified.Touched}, {&shape.verified.answered, &t.verified.answered}, {&shape.verified.effect, &t.verified.effect},
	} {
		same = same && reflect.DeepEqual(r.give(*p[0]), *p[1])
	}
	return same
}

// store puts a text aside: on disk, or where that is not possible, which is reported once, in memory.
func (x *Executor) store(text []byte) (place file.Place, onDisk bool) {
	x.scratch.InMemory = maxInMemory
	place, err := x.scratch.Append(text)
	if err != nil && !x.noScratch {
		x.noScratch = true
		fmt.Fprintf(x.ErrOut, "warning: what waits to be written is kept in memory: %s; free space there, or name another directory with TMPDIR\n", redact.EscapeLine(err.Error()))
	}
	return place, err == nil
}

// read returns what a task at rest has alone.
func (x *Executor) read(q *queued) (r rested, err error) {
	text, err := x.scratch.Read(q.place)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: reading what was verified: %w", q.key(), err)
	}
	return r, nil
}

// entry returns the Entry of a task at rest.
func (r *rested) entry(q *queued) plan.Entry {
	e := q.shape.entry
	e.Object, e.ResourceVersion, e.LastWrite = q.key(), r.Shown, metav1.NewTime(r.LastWrite)
	e.Object.UID = r.UID
	e.Partial = r.give(e.Partial)
	return e
}

// entry returns the Entry of a task, which stays at rest.
func (x *Executor) entry(q *queued) (plan.Entry, error) {
	if q.Task != nil {
		return *q.Entry, nil
	}
	r, err := x.read(q)
	if err != nil {
		return plan.Entry{}, err
	}
	return r.entry(q), nil
}

// wake reads what rest has written. It is safe for concurrent use, with different tasks.
func (x *Executor) wake(q *queued) error {
	if q.Task != nil {
		return nil
	}
	r, err := x.read(q)
	if err != nil {
		return err
	}
	t, e := q.shape.task, r.entry(q)
	t.Key, t.Source, t.JournalIndex, t.Entry = e.Object, q.source, q.index, &e
	if q.shape.verified != nil {
		v := *q.shape.verified
		v.Key, v.resourceVersion, v.patch.Body, v.JournalIndex = t.Key, r.Version, []byte(r.Body), q.index
		v.Key.UID = r.Verified
		v.Touched, v.answered, v.effect = r.give(v.Touched), r.give(v.answered), r.give(v.effect)
		t.verified = &v
		if v.want = x.want(&t); v.Key.Subresource == "" {
			v.want = x.Writer.split(v.want).object
		}
	}
	q.Task, q.shape = &t, nil
	x.scratch.Free(q.place)
	return nil
}

// share has a task that does not rest keep what others have, too, but once.
func (x *Executor) share(t *Task) {
	e := t.Entry
	e.Steps, e.Impacts = diff.Share(&x.common, e.Steps), diff.Share(&x.common, e.Impacts)
	t.Rules, t.Propagated, t.Endpoints = diff.Share(&x.common, t.Rules), diff.Share(&x.common, t.Propagated), diff.Share(&x.common, t.Endpoints)
	if v := t.verified; v != nil {
		v.Changed, v.Removed = diff.Share(&x.common, v.Changed), diff.Share(&x.common, v.Removed)
	}
}

// key is that of the object. At rest, its UID is not known.
func (q *queued) key() engine.ObjectKey {
	if q.Task != nil {
		return q.Key
	}
	key := q.shape.task.Key
	key.Namespace, key.Name = q.namespace, q.name
	return key
}

func (q *queued) named() engine.ObjectKey { return q.key().Named() }

// task is the Task, or what others share with it.
func (q *queued) task() *Task {
	if q.Task != nil {
		return q.Task
	}
	return &q.shape.task
}

// shownEntry is the Entry of a task, at rest without its values.
func (q *queued) shownEntry() *plan.Entry {
	if q.Task != nil {
		return q.Entry
	}
	return &q.shape.entry
}

// shownVerified is what was verified, at rest without its values.
func (q *queued) shownVerified() *Verified {
	if q.Task != nil {
		return q.verified
	}
	return q.shape.verified
}

// isShownManaged reports whether the change was shown with the impact that something else manages the object.
func (q *queued) isShownManaged() bool {
	return slices.ContainsFunc(q.shownEntry().Impacts, func(i plan.Impact) bool { return i.Code == engine.ImpactManaged })
}

// done lets go of what a task does not need once it has its result.
func (x *Executor) done(q *queued) {
	shape := taskShape{task: Task{Key: alike(q.Key)}}
	if slices.ContainsFunc(q.Entry.Steps, func(s engine.Step) bool { return s.Trigger != engine.ObjectKey{} }) {
		shape.entry.Steps = q.Entry.Steps
	}
	q.Task, q.shape = nil, x.shapes.share(shape)
}

// maxShapes is how many of them are known at once.
const maxShapes = 64

// shapes are those that many tasks share, the latest first.
type shapes []*taskShape

// share returns a shape that equals one, if it is known.
func (s *shapes) share(shape taskShape) *taskShape {
	i := slices.IndexFunc(*s, func(known *taskShape) bool { return reflect.DeepEqual(*known, shape) })
	var known *taskShape
	switch {
	case i >= 0:
		known = (*s)[i]
	case len(*s) < maxShapes:
		*s = append(*s, nil)
		fallthrough
	default:
		i, known = len(*s)-1, &shape
	}
	copy((*s)[1:i+1], (*s)[:i])
	(*s)[0] = known
	return known
}
