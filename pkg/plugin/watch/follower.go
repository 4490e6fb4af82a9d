package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// Resource is what can be listed and watched; a *cluster.Watched is one.
type Resource interface {
	fmt.Stringer
	// List calls each with every object, until that fails, and returns the version from which to watch.
	List(ctx context.Context, each func(cluster.RawItem) error) (version string, err error)
	// Watch calls each with every change since a version, until that fails or the watch ends.
	Watch(ctx context.Context, version string, each func(cluster.WatchEvent) error) error
	// Narrow lists and watches only one namespace from now on; false where that is nothing else.
	Narrow(namespace string) bool
	// Wants reports whether a rule may match an object.
	Wants(*cluster.RawItem) bool
	Key(*cluster.RawItem) engine.ObjectKey
	Mapping() *meta.RESTMapping
	Decode(cluster.RawItem) (*unstructured.Unstructured, error)
}

var _ Resource = (*cluster.Watched)(nil)

// Follower follows the objects of a Resource. Its methods are called by one goroutine.
type Follower struct {
	Resource
	// Keeps reports whether rules ask for the last state of an object, once it is changed or gone. Nil keeps none.
	Keeps func(*cluster.RawItem) bool
	// Emit takes each change that rules may act on. Its error ends the follower.
	Emit func(context.Context, *Event) error
	// Tell is told what keeps the follower from its work, once until it works again. It is called by several followers.
	Tell func(error)
	// Fallback is the namespace that is followed where the user may not list all; empty for none.
	Fallback string
	// Backoff is between two attempts; its zero value stands for one of up to half a minute.
	Backoff wait.Backoff
	// State is called when the follower begins to follow, and when it is kept from that; nil where it does not matter.
	State func(f *Follower, follows bool)

	known    map[string]*known // by UID
	version  string            // that is known
	listing  int
	progress bool // since the last attempt
}

// known is what is kept of an object.
type known struct {
	namespace, name string
	version         string
	digest          uint64
	wanted          bool
	listing         int              // in which it was last
	last            *cluster.RawItem // its state, where rules ask for it
}

// quietFailures is how many attempts may fail before that is told: a server that restarts needs some.
const quietFailures = 3

func defaultBackoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 30 * time.Second}
}

// Adopt takes over what another follower of the same resource knows, so that Begin finds what has changed since.
func (f *Follower) Adopt(from *Follower) { f.known, f.listing = from.known, from.listing }

// Same reports whether another follower follows the same objects.
func (f *Follower) Same(other *Follower) bool {
	return f.String() == other.String() && f.Mapping().GroupVersionKind == other.Mapping().GroupVersionKind
}

// Begin lists the objects. What is there is no event, unless the follower knows of a state before.
func (f *Follower) Begin(ctx context.Context) error {
	emit := f.Emit
	if f.known == nil {
		f.known = map[string]*known{}
		f.Emit = func(context.Context, *Event) error { return nil }
	}
	err := f.list(ctx)
	if apierrors.IsForbidden(err) && f.Narrow(f.Fallback) {
		f.Tell(fmt.Errorf("%w; following those in namespace %s alone", err, f.Fallback))
		err = f.list(ctx)
	}
	f.Emit = emit
	return err
}

// Run follows the objects until the context ends, or Emit fails.
func (f *Follower) Run(ctx context.Context) error {
	backoff := f.Backoff
	if backoff.Steps == 0 {
		backoff = defaultBackoff()
	}
	delay, failures := backoff.DelayFunc(), 0
	for {
		f.progress = false
		follows, err := f.attempt(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var emit *emitError
		switch {
		case isEmit(err, &emit):
			return emit.error
		case err == nil || f.progress:
			failures = 0
		default:
			failures++
		}
		if f.progress || follows && err == nil {
			delay = backoff.DelayFunc()
		}
		if failures == quietFailures {
			f.Tell(fmt.Errorf("cannot watch %s, trying again: %w", f, err))
			f.state(false)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay()):
		}
	}
}

// attempt watches once, after a listing where the known version has expired.
func (f *Follower) attempt(ctx context.Context) (follows bool, err error) {
	if f.version == "" {
		if err := f.list(ctx); err != nil {
			return false, err
		}
	}
	f.state(true)
	err = f.Watch(ctx, f.version, func(e cluster.WatchEvent) error { return f.take(ctx, &e) })
	if cluster.Expired(err) {
		f.version = ""
		return true, nil
	}
	return true, err
}

func (f *Follower) state(follows bool) {
	if f.State != nil {
		f.State(f, follows)
	}
}

// emitError is an error of Emit.
type emitError struct{ error }

// isEmit reports whether an error is one of Emit.
func isEmit(err error, as **emitError) bool {
	var is bool
	*as, is = err.(*emitError) //nolint:errorlint // it is not wrapped
	return is
}

// take takes an event of the watch.
func (f *Follower) take(ctx context.Context, e *cluster.WatchEvent) error {
	var err error
	switch e.Type {
	case apiwatch.Added, apiwatch.Modified:
		err = f.changed(ctx, &e.Item)
	case apiwatch.Deleted:
		err = f.deleted(ctx, &e.Item)
	}
	if err == nil {
		f.version, f.progress = strings.Clone(e.Item.ResourceVersion), true
	}
	return err
}

// list compares all objects with what is known.
func (f *Follower) list(ctx context.Context) error {
	f.listing++
	version, err := f.List(ctx, func(i cluster.RawItem) error {
		if err := f.changed(ctx, &i); err != nil {
			return err
		}
		f.known[i.UID].listing = f.listing
		return nil
	})
	if err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(f.known)) {
		k := f.known[uid]
		switch {
		case k.listing == f.listing:
			continue
		case k.last != nil:
			err = f.deleted(ctx, k.last)
		case k.wanted:
			key := f.Key(&cluster.RawItem{Namespace: k.namespace, Name: k.name})
			f.Tell(fmt.Errorf("%s was deleted while it was not watched: its last state is not known, and no rule was asked", key))
		}
		if err != nil {
			return err
		}
		delete(f.known, uid)
	}
	f.version, f.progress = strings.Clone(version), true
	return nil
}

// changed takes an object as it is now.
func (f *Follower) changed(ctx context.Context, i *cluster.RawItem) error {
	before := f.known[i.UID]
	if before != nil && before.version == i.ResourceVersion {
		f.reconsider(before, i)
		return nil
	}
	own := i.Own()
	i = &own
	now := &known{ // names of their own: those of the item keep its text
		namespace: strings.Clone(i.Namespace), name: strings.Clone(i.Name), version: strings.Clone(i.ResourceVersion),
		digest: i.Digest(), wanted: f.Wants(i), listing: f.listing,
	}
	if now.wanted && f.Keeps != nil && f.Keeps(i) {
		now.last = i
	}
	e := Event{Operation: engine.OperationCreate}
	if before != nil {
		e.Operation, e.Old = engine.OperationUpdate, before.last
	}
	if now.wanted && before == nil || before != nil && before.digest != now.digest && (now.wanted || before.wanted) {
		if err := f.emit(ctx, &e, i); err != nil {
			return err
		}
	}
	f.known[strings.Clone(i.UID)] = now
	return nil
}

// reconsider keeps of an object that is as it was what the rules ask for now.
func (f *Follower) reconsider(k *known, i *cluster.RawItem) {
	k.wanted = f.Wants(i)
	switch keeps := k.wanted && f.Keeps != nil && f.Keeps(i); {
	case !keeps:
		k.last = nil
	case k.last == nil:
		own := i.Own()
		k.last = &own
	}
}

// deleted takes an object that is gone.
func (f *Follower) deleted(ctx context.Context, i *cluster.RawItem) error {
	own := i.Own()
	if f.Wants(&own) {
		if err := f.emit(ctx, &Event{Operation: engine.OperationDelete}, &own); err != nil {
			return err
		}
	}
	delete(f.known, own.UID)
	return nil
}

func (f *Follower) emit(ctx context.Context, e *Event, i *cluster.RawItem) error {
	e.Resource, e.Item, e.Key, e.Time = f.Resource, *i, f.Key(i), time.Now()
	e.Key.UID = types.UID(i.UID)
	if err := f.Emit(ctx, e); err != nil {
		return &emitError{err}
	}
	return nil
}

// Known returns of how many objects something is kept, and of how many of them the last state.
func (f *Follower) Known() (objects, states int) {
	for _, k := range f.known {
		if k.last != nil {
			states++
		}
	}
	return len(f.known), states
}
