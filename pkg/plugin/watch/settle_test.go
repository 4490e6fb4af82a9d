package watch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

func TestSettling(t *testing.T) {
	one := event(t, "UPDATE one=1").Key
	other := event(t, "UPDATE other=1").Key
	for name, c := range map[string]struct {
		event   func(i int, version string) string // of "NAME@VERSION"
		causes  []engine.ObjectKey
		between time.Duration
		pauses  bool
	}{
		"a rule that changes its own trigger":       {event: func(_ int, v string) string { return "one@" + v }, pauses: true},
		"somebody who sets the object back":         {event: func(i int, _ string) string { return fmt.Sprintf("one@%d", 1000+i) }, pauses: true},
		"somebody who does that now and then":       {event: func(i int, _ string) string { return fmt.Sprintf("one@%d", 1000+i) }, between: 2 * time.Minute},
		"a trigger that others change":              {event: func(i int, _ string) string { return fmt.Sprintf("other@%d", 1000+i) }, causes: []engine.ObjectKey{other}},
		"a trigger that was written for the change": {event: func(_ int, v string) string { return "other@" + v }, causes: []engine.ObjectKey{other}, pauses: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			s := watch.Settling{Now: func() time.Time { return now }}
			begun := 0
			for i := range 2 * watch.MaxWrites {
				e := event(t, "UPDATE one=1")
				e.Item = object(t, c.event(i, fmt.Sprint(i)))
				e.Key = (&script{t: t}).Key(&e.Item)
				paused, begins := s.Pauses(one, c.causes, []*watch.Event{e})
				s.Seen([]*watch.Event{e})
				if begins {
					begun = i
				}
				if paused != (c.pauses && i >= watch.MaxWrites) {
					t.Fatalf("after %d writes: paused %t", i, paused)
				}
				s.Wrote(one, fmt.Sprint(i+1))
				s.Wrote(other, fmt.Sprint(i+1))
				now = now.Add(c.between)
			}
			if (begun == watch.MaxWrites) != c.pauses {
				t.Errorf("paused after %d writes", begun)
			}
		})
	}
}

// What is kept of writes is what was written lately.
func TestSettlingForgets(t *testing.T) {
	now := time.Now()
	s := watch.Settling{Now: func() time.Time { return now }}
	most := 0
	for i := range 10_000 {
		k := event(t, "UPDATE one=1").Key
		k.Name = fmt.Sprint(i)
		s.Wrote(k, "1")
		most = max(most, s.Len())
		now = now.Add(time.Second)
	}
	if most > 130 {
		t.Errorf("%d objects were kept at once", most)
	}
}
