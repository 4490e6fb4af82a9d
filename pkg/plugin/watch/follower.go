package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Resource can be listed and watched, such as a *cluster.Watched.
type Resource interface {
	fmt.Stringer
	// List calls each with every object, until that fails, and returns the version to watch from.
	List(ctx context.Context, each func(*unstructured.Unstructured) error) (version string, err error)
	// Watch calls opened when the server has accepted the watch, and each with every change since a version,
	// until that fails or the watch ends.
	Watch(ctx context.Context, version string, opened func(), each func(cluster.WatchEvent) error) error
	// Wants reports whether a rule may match an object.
	Wants(*unstructured.Unstructured) bool
	Mapping() *meta.RESTMapping
}

var _ Resource = (*cluster.Watched)(nil)

// Follower follows the objects of a Resource. Its methods are called by one goroutine.
type Follower struct {
	Resource
	// Keeps reports whether rules ask for the last state of an object after it changes or is deleted; nil for
	// no object.
	Keeps func(*unstructured.Unstructured) bool
	// Emit takes each change that rules may act on. A change that it refuses comes again, with the next listing
	// or watch.
	Emit func(context.Context, *Event) error
	// Report is called with errors of the follower, each once until it works again, by several goroutines.
	Report func(error)
	// Parts are followed instead if the user may not list the whole resource: it in the namespaces of the run.
	Parts []Resource
	// State is called with nil when the server has accepted a watch, and with an error after several failures
	// in a row; may be nil.
	State func(*Follower, error)

	memory   *memory
	version  string    // to watch from
	opened   time.Time // when the server accepted the watch; zero before
	progress bool      // the watch has returned something
}

// memory has the known objects of a resource.
type memory struct {
	objects map[types.UID]*known
	listing int // number of the latest one
}

// known is what is kept of an object.
type known struct {
	version string
	digest  uint64
	wanted  bool
	listing int    // the last one with the object
	last    []byte // its state as JSON, a tenth of the memory, if rules ask for it
}

// quietFailures is the number of failures before they are reported: a server that restarts causes some.
const quietFailures = 3

// brief is how long a watch without events has to last to count as successful.
const brief = 10 * time.Second

// DefaultBackoff is for attempts to reach a server that does not answer: up to half a minute.
func DefaultBackoff() wait.Backoff {
	return wait.Backoff{
		Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10,
		Cap: 30 * time.Second,
	}
}

// Adopt takes over what another follower of the same resource knows, so that Begin finds the changes since.
func (f *Follower) Adopt(from *Follower) { f.memory = from.memory }

// Same reports whether another follower follows the same objects.
func (f *Follower) Same(other *Follower) bool {
	return f.String() == other.String() && f.Mapping().GroupVersionKind == other.Mapping().GroupVersionKind
}

// Begin lists the objects. Existing objects are no events, unless the follower knows a previous state. It
// returns the followers that have begun: itself, or those of its Parts.
func (f *Follower) Begin(ctx context.Context) ([]*Follower, error) {
	emit := f.Emit
	if f.memory == nil {
		f.memory = &memory{objects: map[types.UID]*known{}}
		f.Emit = func(context.Context, *Event) error { return nil }
	}
	err := f.list(ctx)
	f.Emit = emit
	if !apierrors.IsForbidden(err) || len(f.Parts) == 0 {
		return []*Follower{f}, err
	}
	f.Report(fmt.Errorf("%w; following those in the namespaces of the run alone", err))
	var begun []*Follower
	for _, part := range f.Parts {
		one := *f
		one.Resource, one.Parts, one.memory = part, nil, nil
		if _, err := one.Begin(ctx); err != nil {
			return nil, err
		}
		begun = append(begun, &one)
	}
	return begun, nil
}

// Run follows the objects until the context ends.
func (f *Follower) Run(ctx context.Context) {
	delay, failures := DefaultBackoff().DelayFunc(), 0
	for {
		err := f.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if f.progress || !f.opened.IsZero() && time.Since(f.opened) >= brief {
			delay, failures = DefaultBackoff().DelayFunc(), 0
		} else if failures++; failures == quietFailures {
			err = cmp.Or(err, errors.New("the server ends each watch at once"))
			f.Report(fmt.Errorf("cannot watch %s, trying again: %w", f, err))
			f.state(err)
		}
		if !cluster.Pause(ctx, delay()) {
			return
		}
	}
}

// attempt watches once, after a listing if the known version has expired.
func (f *Follower) attempt(ctx context.Context) error {
	f.opened, f.progress = time.Time{}, false
	if f.version == "" {
		if err := f.list(ctx); err != nil {
			return err
		}
	}
	opened := func() {
		f.opened = time.Now()
		f.state(nil)
	}
	err := f.Watch(ctx, f.version, opened, func(e cluster.WatchEvent) error { return f.take(ctx, &e) })
	if cluster.Expired(err) {
		f.version = ""
	}
	return err
}

func (f *Follower) state(err error) {
	if f.State != nil {
		f.State(f, err)
	}
}

// take takes an event of the watch.
func (f *Follower) take(ctx context.Context, e *cluster.WatchEvent) error {
	var err error
	switch e.Type {
	case apiwatch.Added, apiwatch.Modified:
		if !f.replays(e.Object) {
			err = f.changed(ctx, e.Object)
		}
	case apiwatch.Deleted:
		err = f.deleted(ctx, e.Object)
	}
	if err == nil {
		f.version, f.progress = e.Object.GetResourceVersion(), true
	}
	return err
}

// replays reports whether a state is older than the known one: if the pages of a listing expire on the
// server, later pages are newer than the version that is watched from.
func (f *Follower) replays(u *unstructured.Unstructured) bool {
	k := f.memory.objects[u.GetUID()]
	if k == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(u.GetResourceVersion(), k.version)
	return err == nil && order < 0
}

// list compares all objects with the known ones. Deletions are events only if the last state is kept.
func (f *Follower) list(ctx context.Context) error {
	m := f.memory
	m.listing++
	version, err := f.List(ctx, func(u *unstructured.Unstructured) error {
		if err := f.changed(ctx, u); err != nil {
			return err
		}
		m.objects[u.GetUID()].listing = m.listing
		return nil
	})
	if err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(m.objects)) {
		k := m.objects[uid]
		if k.listing == m.listing {
			continue
		}
		if last := k.state(); last != nil {
			if err := f.deleted(ctx, last); err != nil {
				return err
			}
		}
		delete(m.objects, uid)
	}
	f.version = version
	return nil
}

// changed takes the current state of an object.
func (f *Follower) changed(ctx context.Context, u *unstructured.Unstructured) error {
	before := f.memory.objects[u.GetUID()]
	now := &known{version: u.GetResourceVersion(), wanted: f.Wants(u), listing: f.memory.listing}
	if now.wanted && f.Keeps != nil && f.Keeps(u) {
		now.last, _ = json.Marshal(u.Object) // it was read
	}
	if before != nil && before.version == now.version { // but rules may ask for another state
		now.digest = before.digest
		f.memory.objects[u.GetUID()] = now
		return nil
	}
	now.digest = cluster.Digest(u)
	e := Event{Operation: engine.OperationCreate}
	if before != nil {
		e.Operation, e.Old = engine.OperationUpdate, before.state()
	}
	if now.wanted && before == nil || before != nil && before.digest != now.digest &&
		(now.wanted || before.wanted) {
		if err := f.emit(ctx, &e, u); err != nil {
			return err
		}
	}
	f.memory.objects[u.GetUID()] = now
	return nil
}

// state returns the last state of an object; nil if it is not kept.
func (k *known) state() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if k.last == nil || json.Unmarshal(k.last, &u.Object) != nil {
		return nil
	}
	return u
}

// deleted takes a deleted object.
func (f *Follower) deleted(ctx context.Context, u *unstructured.Unstructured) error {
	if f.Wants(u) {
		if err := f.emit(ctx, &Event{Operation: engine.OperationDelete}, u); err != nil {
			return err
		}
	}
	delete(f.memory.objects, u.GetUID())
	return nil
}

func (f *Follower) emit(ctx context.Context, e *Event, u *unstructured.Unstructured) error {
	e.Mapping, e.Object, e.Key, e.Time = f.Mapping(), u, engine.KeyOf(u), time.Now()
	return f.Emit(ctx, e)
}

// Readiness reports whether all of some followers follow. It is safe for concurrent use. The zero value is
// not ready.
type Readiness struct {
	mu  sync.Mutex
	why map[*Follower]error // nil if ready
}

// Track replaces the followers by others, which do not watch yet.
func (r *Readiness) Track(followers []*Follower) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = map[*Follower]error{}
	for _, f := range followers {
		r.why[f] = fmt.Errorf("%s: not watched yet", f)
		f.State = r.set
	}
}

func (r *Readiness) set(f *Follower, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, tracked := r.why[f]; !tracked {
		return
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", f, err)
	}
	r.why[f] = err
}

// Err returns why a follower does not follow, the first by name; nil if all do.
func (r *Readiness) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == nil {
		return errors.New("what is to be watched is not known yet")
	}
	var all []error
	for _, err := range r.why {
		if err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}
