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

// RetryError is an error of an evaluation that may succeed later, for example after a server has restarted.
type RetryError struct{ Err error }

// Error returns the reason.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RetryError) Unwrap() error { return e.Err }

// Loop evaluates the events of a Queue.
type Loop struct {
	Queue *Queue
	Most  int // events that are evaluated together
	// Evaluate evaluates events. After a *RetryError it is called again, with later events, until it succeeds;
	// any other error is reported, and these events come again later.
	Evaluate func(context.Context, []*Event) error
	Report   func(error)
	// Settle is how long the loop waits after a change of an object for others, which often follow.
	Settle time.Duration
}

// Run evaluates events until the context ends or stop does, which does not interrupt an evaluation.
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

// MaxWrites is how often an object is written only because of earlier writes to it, or of reactions to
// these. Rules that depend on each other settle after as many writes as there are rules in a row.
const MaxWrites = 10

// calm is the time after which a write is independent of the previous one.
const calm = time.Minute

// Settling finds objects that never settle: rules change them again after each write, or another client
// reverts them. The zero value is ready for use.
type Settling struct {
	written map[engine.ObjectKey]*written
	swept   time.Time // when old entries were dropped
}

type written struct {
	version string // of the last write, until its event is seen
	times   int    // in a row
	last    time.Time
	paused  bool
}

// Wrote records a write, and the version of the object after it.
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

// forget drops old entries once a minute; paused objects stay.
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

// Pauses reports whether a change of an object must not be made, and whether it is the first such. Causes
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

// again reports whether only earlier writes, or reactions of others to these, cause a change.
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

// Seen records that events were evaluated.
func (s *Settling) Seen(events []*Event) {
	for _, e := range events {
		if w := s.written[e.Key.Named()]; w != nil && w.version == e.Object.GetResourceVersion() {
			w.version = ""
		}
	}
}

// filesEvery is the interval at which files are checked.
const filesEvery = 2 * time.Second

// Files records the state of files and directories, and returns a function that calls changed whenever their
// size or time has changed, until the context ends. It follows links, such as those of a mounted volume.
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

// stateOf returns a digest of the state of files, even unreadable ones.
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
