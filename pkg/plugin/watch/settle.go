package watch

import (
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// MaxWrites is how often an object is written because of nothing but earlier writes to it, or of what others did to it after
// these. Rules that depend on each other settle after as many writes as there are rules in a row.
const MaxWrites = 10

// calm is the time after which a write has nothing to do with the one before it.
const calm = time.Minute

// Settling finds objects that never settle: rules change them again after each write, or somebody else sets them back. The zero
// value is ready for use.
type Settling struct {
	Now func() time.Time // nil stands for time.Now

	versions map[engine.ObjectKey]string // of own writes whose events have not been seen
	written  map[engine.ObjectKey]*written
	swept    time.Time // when what is over was dropped
}

// written is an object that was written.
type written struct {
	times  int // in a row
	last   time.Time
	paused bool
}

func (s *Settling) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Wrote notes a write, and the version that the object has after it.
func (s *Settling) Wrote(k engine.ObjectKey, version string) {
	if s.versions == nil {
		s.versions, s.written = map[engine.ObjectKey]string{}, map[engine.ObjectKey]*written{}
	}
	k.Subresource = ""
	s.versions[k.Named()] = version
	w := s.written[k.Named()]
	if w == nil {
		w = &written{}
		s.written[k.Named()] = w
	}
	w.last = s.now()
	s.forget()
}

// forget drops what is over once a minute, so that what is kept is what was written within two minutes, and what is paused.
func (s *Settling) forget() {
	now := s.now()
	if now.Sub(s.swept) <= calm {
		return
	}
	s.swept = now
	for k, w := range s.written {
		if !w.paused && now.Sub(w.last) > calm {
			delete(s.written, k)
			delete(s.versions, k)
		}
	}
}

// Len returns of how many objects something is kept.
func (s *Settling) Len() int { return len(s.written) }

// Pauses reports whether the change of an object is not to be made, and whether that begins with it. Causes are the triggers of
// the rules that change it; an empty one is the object itself.
func (s *Settling) Pauses(k engine.ObjectKey, causes []engine.ObjectKey, events []*Event) (paused, begins bool) {
	k.Subresource = ""
	w := s.written[k.Named()]
	switch {
	case w == nil:
		return false, false
	case w.paused:
		return true, false
	case s.now().Sub(w.last) > calm || !s.again(k, causes, events):
		w.times = 0
		return false, false
	}
	w.times++
	w.paused = w.times >= MaxWrites
	return w.paused, w.paused
}

// again reports whether nothing but earlier writes, and what was done to the object after them, causes a change.
func (s *Settling) again(k engine.ObjectKey, causes []engine.ObjectKey, events []*Event) bool {
	for _, e := range events {
		key := e.Key.Named()
		switch {
		case key == k.Named(), s.versions[key] == e.Item.ResourceVersion:
			continue
		}
		for _, cause := range causes {
			if cause.Named() == key {
				return false
			}
		}
	}
	return true
}

// Seen notes that events were evaluated.
func (s *Settling) Seen(events []*Event) {
	for _, e := range events {
		if key := e.Key.Named(); s.versions[key] == e.Item.ResourceVersion {
			delete(s.versions, key)
		}
	}
}
