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
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// rested is what a task has alone, and does not need while it waits for its turn: the values that its change is about, and what
// its request is guarded with. All else of its Entry and of what was verified is the same for many tasks.
type rested struct {
	Shown     string    `json:"shown"` // the version of the object
	LastWrite time.Time `json:"lastWrite"`
	UID       types.UID `json:"uid"` // and Version, of what was verified
	Version   string    `json:"version"`
	Body      string    `json:"body"`
	// States are those before and after, of each Partial.
	States []diff.Part `json:"states"`
}

// rest packs what a task has alone until wake unpacks it, and has it share all else. A task stays as it is if that would
// not come out the same, if its change was made of a Secret, and if it has a part for /status. It is not safe for concurrent use.
func (x *Executor) rest(t *Task) {
	if t.packed != nil || t.Entry.HoldsSecrets() || t.Entry.Object != t.Key {
		return
	}
	r := rested{Shown: t.Entry.ResourceVersion, LastWrite: t.Entry.LastWrite.UTC()}
	entry := *t.Entry
	entry.Object, entry.ResourceVersion, entry.LastWrite = engine.ObjectKey{}, "", metav1.Time{}
	entry.Partial = r.take(entry.Partial)
	var v Verified
	if t.verified != nil {
		v = *t.verified
		r.UID, r.Version, r.Body = v.Key.UID, v.resourceVersion, string(v.patch.Body)
		v.Touched, v.answered, v.effect = r.take(v.Touched), r.take(v.answered), r.take(v.effect)
		if v.Key.UID = t.Key.UID; v.Key != t.Key || v.status != nil {
			return
		}
		v.Key, v.resourceVersion, v.patch.Body, v.want = engine.ObjectKey{}, "", nil, nil
	}
	text, err := json.Marshal(r)
	var again rested
	if err != nil || json.Unmarshal(text, &again) != nil || !reflect.DeepEqual(r, again) || !again.restores(t, entry, v) {
		return
	}
	if t.packed = x.rests.pack(text); t.packed == nil {
		return
	}
	t.Entry = x.entries.share(entry)
	if t.verified != nil {
		t.verified = x.verifieds.share(v)
	}
}

// take takes the values of a change.
func (r *rested) take(p diff.Partial) diff.Partial {
	r.States = append(r.States, p.Before, p.After)
	fields := slices.Clone(p.Fields)
	for i := range fields {
		fields[i].From, fields[i].To = nil, nil
	}
	return diff.Partial{Fields: fields}
}

// give returns the change whose values were taken first, of those that are left.
func (r *rested) give(p diff.Partial) diff.Partial {
	p.Before, p.After, r.States = r.States[0], r.States[1], r.States[2:]
	if p.Fields == nil {
		return p
	}
	return p.WithStates(p.Before, p.After)
}

// restores reports whether the changes of a task come out as they are.
func (r rested) restores(t *Task, entry plan.Entry, v Verified) bool {
	same := reflect.DeepEqual(r.give(entry.Partial), t.Entry.Partial)
	if t.verified == nil {
		return same
	}
	for _, p := range [][2]*diff.Partial{{&v.Touched, &t.verified.Touched}, {&v.answered, &t.verified.answered}, {&v.effect, &t.verified.effect}} {
		same = same && reflect.DeepEqual(r.give(*p[0]), *p[1])
	}
	return same
}

// rested unpacks what a task at rest has alone.
func (x *Executor) rested(t *Task) (r rested, err error) {
	text, err := x.rests.unpack(t.packed)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", t.Key, err)
	}
	return r, nil
}

// entry returns what the Entry of a task is where it is not at rest.
func (r *rested) entry(t *Task) plan.Entry {
	e := *t.Entry
	e.Object, e.ResourceVersion, e.LastWrite = t.Key, r.Shown, metav1.NewTime(r.LastWrite)
	e.Partial = r.give(e.Partial)
	return e
}

// entry returns the Entry of a task, which stays at rest.
func (x *Executor) entry(t *Task) (plan.Entry, error) {
	if t.packed == nil {
		return *t.Entry, nil
	}
	r, err := x.rested(t)
	if err != nil {
		return plan.Entry{}, err
	}
	return r.entry(t), nil
}

// wake unpacks what rest has packed. It is safe for concurrent use, with different tasks.
func (x *Executor) wake(t *Task) error {
	if t.packed == nil {
		return nil
	}
	r, err := x.rested(t)
	if err != nil {
		return err
	}
	e := r.entry(t)
	t.packed, t.Entry = nil, &e
	if t.verified == nil {
		return nil
	}
	v := *t.verified
	v.Key, v.resourceVersion, v.patch.Body, v.JournalIndex = t.Key, r.Version, []byte(r.Body), t.JournalIndex
	v.Key.UID = r.UID
	v.Touched, v.answered, v.effect = r.give(v.Touched), r.give(v.answered), r.give(v.effect)
	if v.want = x.want(t); v.Key.Subresource == "" {
		v.want = x.Writer.split(v.want).object
	}
	t.verified = &v
	return nil
}

// done lets go of what a task does not need once it has its result.
func (t *Task) done() {
	t.verified, t.packed = nil, nil
	if !slices.ContainsFunc(t.Entry.Steps, func(s engine.Step) bool { return s.Trigger != engine.ObjectKey{} }) {
		t.Entry = nil
	}
}

// maxShapes is how many of them are known at once.
const maxShapes = 64

// shapes are values that many tasks share.
type shapes[T any] []*T

// share returns a value that equals v, if one is known.
func (s *shapes[T]) share(v T) *T {
	for i, known := range *s {
		if reflect.DeepEqual(*known, v) {
			copy((*s)[1:i+1], (*s)[:i])
			(*s)[0] = known // is looked at first
			return known
		}
	}
	if len(*s) < maxShapes {
		*s = append(*s, &v)
	}
	return &v
}
