package watch

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// RetryError is an error of an evaluation that may succeed later, such as one of a server that restarts.
type RetryError struct{ Err error }

// Error is the reason.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RetryError) Unwrap() error { return e.Err }

// Loop evaluates the events of a Queue, some after others.
type Loop struct {
	Queue *Queue
	Most  int // events that are evaluated at once
	// Evaluate evaluates events. After a *RetryError it is called again, with what came meanwhile, for as
	// long as it takes; any other error is reported, and these events come again later.
	Evaluate func(context.Context, []*Event) error
	Report   func(error)
	// Settle is how long the loop waits for more changes of an object after one, which often come in groups.
	Settle time.Duration
}

// Run evaluates events until the context ends or stop does. An evaluation that has begun is ended by the
// context alone.
func (l *Loop) Run(ctx, stop context.Context) {
	delay, failures := DefaultBackoff().DelayFunc(), 0
	for {
		came, err := l.Queue.Wait(stop)
		if err != nil || !cluster.Pause(stop, time.Until(came.Add(l.Settle))) {
			return
		}
		events := l.Queue.Take(l.Most)
		err = l.Evaluate(ctx, events)
		var again *RetryError
		switch {
		case ctx.Err() != nil:
			return
		case !errors.As(err, &again):
			delay, failures = DefaultBackoff().DelayFunc(), 0
			if err != nil {
				l.Report(fmt.Errorf("%s of %s: %w", events[0].Operation, events[0].Key, err))
				for _, e := range events {
					l.Queue.Later(e)
				}
			}
			continue
		}
		l.Queue.Return(events)
		if failures++; failures == quietFailures {
			l.Report(fmt.Errorf("cannot evaluate %s of %s, trying again: %w", events[0].Operation, events[0].Key, err))
		}
		if !cluster.Pause(ctx, delay()) {
			return
		}
	}
}

// MaxWrites is how often an object is written because of nothing but earlier writes to it, or of what others
// did to it after these. Rules that depend on each other settle after as many writes as there are rules in a
// row.
const MaxWrites = 10

// calm is the time after which a write has nothing to do with the one before it.
const calm = time.Minute

// Settling finds objects that never settle: rules change them again after each write, or somebody else sets
// them back. The zero value is ready for use.
type Settling struct {
	written map[engine.ObjectKey]*written
	swept   time.Time // when what is over was dropped
}

// written is an object that was written.
type written struct {
	version string // of the last write, if its event has not been seen
	times   int    // in a row
	last    time.Time
	paused  bool
}

// Wrote notes a write, and the version that the object has after it.
func (s *Settling) Wrote(k engine.ObjectKey, version string) {
	if s.written == nil {
		s.written = map[engine.ObjectKey]*written{}
	}
	k = k.Whole()
	w := s.written[k]
	if w == nil {
		w = &written{}
		s.written[k] = w
	}
	w.version, w.last = version, time.Now()
	s.forget()
}

// forget drops what is over once a minute, so that what is kept is what was written within two minutes, and
// what is paused.
func (s *Settling) forget() {
	now := time.Now()
	if now.Sub(s.swept) <= calm {
		return
	}
	s.swept = now
	for k, w := range s.written {
		if !w.paused && now.Sub(w.last) > calm {
			delete(s.written, k)
		}
	}
}

// Pauses reports whether the change of an object is not to be made, and whether that begins with it. Causes
// are the triggers of the rules that change it; an empty one is the object itself.
func (s *Settling) Pauses(k engine.ObjectKey, causes []engine.ObjectKey,
	events []*Event,
) (paused, begins bool) {
	k = k.Whole()
	w := s.written[k]
	switch {
	case w == nil:
		return false, false
	case w.paused:
		return true, false
	case time.Since(w.last) > calm || !s.again(k, causes, events):
		w.times = 0
		return false, false
	}
	w.times++
	w.paused = w.times >= MaxWrites
	return w.paused, w.paused
}

// again reports whether nothing but earlier writes, and what was done to the object after them, causes a
// change.
func (s *Settling) again(k engine.ObjectKey, causes []engine.ObjectKey, events []*Event) bool {
	for _, e := range events {
		key := e.Key.Named()
		if w := s.written[key]; key == k || w != nil && w.version == e.Object.GetResourceVersion() {
			continue
		}
		if slices.ContainsFunc(causes, func(cause engine.ObjectKey) bool { return cause.Named() == key }) {
			return false
		}
	}
	return true
}

// Seen notes that events were evaluated.
func (s *Settling) Seen(events []*Event) {
	for _, e := range events {
		if w := s.written[e.Key.Named()]; w != nil && w.version == e.Object.GetResourceVersion() {
			w.version = ""
		}
	}
}

// filesEvery is how often files are looked at.
const filesEvery = 2 * time.Second

// Files notes how files and directories are, and returns what calls changed whenever something in them has
// changed since, by its size or time, until the context ends. Links are followed, such as those of a volume
// that a cluster mounts.
func Files(paths []string) (follow func(ctx context.Context, changed func())) {
	before := stateOf(paths)
	return func(ctx context.Context, changed func()) {
		for len(paths) > 0 && cluster.Pause(ctx, filesEvery) {
			if now := stateOf(paths); now != before {
				before = now
				changed()
			}
		}
	}
}

// stateOf identifies files as they are. What cannot be read is a state, too.
func stateOf(paths []string) uint64 {
	h := fnv.New64a()
	for _, path := range paths {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		_ = filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error { // errors are noted
			info, failed := os.Stat(name)
			if err != nil || failed != nil {
				fmt.Fprintf(h, "%s: not there\n", name)
				return nil
			}
			if !info.IsDir() {
				fmt.Fprintf(h, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
			}
			return nil
		})
	}
	return h.Sum64()
}
