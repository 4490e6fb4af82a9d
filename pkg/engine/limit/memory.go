package limit

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// MaxMemory is the memory limit unless GOMEMLIMIT or a smaller machine sets another one.
const MaxMemory = 2 << 30

// Memory returns the memory limit of the process: GOMEMLIMIT, else a quarter of the machine, at most
// MaxMemory, and at most three quarters of the container. Both arguments are in bytes, and 0 if unknown.
func Memory(machine, container int64) int64 {
	if set := debug.SetMemoryLimit(-1); set != math.MaxInt64 {
		return set
	}
	most := int64(MaxMemory)
	if machine > 0 {
		most = min(most, machine/4)
	}
	if container > 0 {
		most = min(most, container/4*3)
	}
	return most
}

// MemoryError is why a run ended that needs more memory than its limit.
type MemoryError struct {
	Limit  int64
	During string // "policy/rule on Pod shop/web", an object, or what was read; empty if unknown
}

// Error says how to raise the limit.
func (e *MemoryError) Error() string {
	during := ""
	if e.During != "" {
		during = ", at " + e.During
	}
	return fmt.Sprintf("the run needs more memory than its limit of %d MiB%s; the environment variable GOMEMLIMIT raises it, such as GOMEMLIMIT=8GiB", e.Limit>>20, during)
}

// watch is the memory limit of a run, and the objects in progress.
type watch struct {
	limit int64
	mu    sync.Mutex
	busy  map[*object]bool
}

// object is an object in evaluation, or a file being read.
type object struct {
	name  fmt.Stringer
	began time.Time
	rule  atomic.Pointer[Clock] // the rule evaluated on it
}

func (o *object) String() string {
	if rule := o.rule.Load(); rule != nil {
		return fmt.Sprintf("%s on %s", rule.rule, o.name)
	}
	return o.name.String()
}

type (
	watchKey  struct{}
	objectKey struct{}
)

// lookAfter is the time between two looks of the watch.
const lookAfter = 20 * time.Millisecond

// Watch returns a context that is cancelled, with a *MemoryError as the cause, when the live memory of the
// process exceeds the limit. Call stop when the run has ended.
func Watch(parent context.Context, limit int64) (ctx context.Context, stop func()) {
	w := &watch{limit: limit, busy: map[*object]bool{}}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, watchKey{}, w))
	go w.run(ctx, cancel)
	return ctx, func() { cancel(context.Canceled) }
}

func (w *watch) run(ctx context.Context, cancel func(error)) {
	ticks := time.NewTicker(lookAfter)
	defer ticks.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if metrics.Read(sample); sample[0].Value.Uint64() > uint64(max(w.limit, 0)) {
			cancel(&MemoryError{Limit: w.limit, During: w.longest()})
			return
		}
	}
}

// longest returns what has been in progress the longest: a rule, if one is evaluated.
func (w *watch) longest() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first fmt.Stringer
	var began time.Time
	for o := range w.busy {
		rule, since := o.rule.Load(), o.began
		if rule != nil {
			since = rule.began.Add(-time.Hour) // a rule comes before reads
		}
		if first == nil || since.Before(began) {
			first, began = o, since
		}
	}
	if first == nil {
		return ""
	}
	return first.String()
}

// Object returns a context for evaluating an object, or reading a file: a memory error names it, and the rule
// on it. Call done afterwards.
func Object(ctx context.Context, name fmt.Stringer) (_ context.Context, done func()) {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok {
		return ctx, func() {}
	}
	o := &object{name: name, began: time.Now()}
	w.mu.Lock()
	w.busy[o] = true
	w.mu.Unlock()
	return context.WithValue(ctx, objectKey{}, o), func() {
		w.mu.Lock()
		delete(w.busy, o)
		w.mu.Unlock()
	}
}

// enter notes which rule is evaluated on the object of the context, until done is called.
func enter(ctx context.Context, c *Clock) (done func()) {
	o, ok := ctx.Value(objectKey{}).(*object)
	if !ok {
		return func() {}
	}
	before := o.rule.Swap(c)
	return func() { o.rule.Store(before) }
}
