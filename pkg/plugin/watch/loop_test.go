package watch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/watch"
)

// A cluster mounts files as links to a directory that it replaces by another one.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		_ = os.Remove(filepath.Join(dir, name))
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("1/p.yaml", "one")
	write("2/p.yaml", "second")
	write("plain/a.yaml", "one")
	link("1", "data")
	link("data/p.yaml", "p.yaml")
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		changes := 0
		done := make(chan struct{})
		follow := watch.Files([]string{filepath.Join(dir, "p.yaml"), filepath.Join(dir, "plain"), filepath.Join(dir, "later")})
		write("plain/b.yaml", "while nobody follows yet")
		go func() {
			defer close(done)
			follow(ctx, func() { changes++ })
		}()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if changes != 1 {
			t.Fatalf("%d changes were noticed of what came before", changes)
		}
		changes = 0
		for want, change := range []func(){
			func() {}, func() { link("2", "data") }, func() { write("plain/b.yaml", "x") },
			func() { _ = os.Remove(filepath.Join(dir, "plain/a.yaml")) }, func() { write("later", "x") },
		} {
			synctest.Wait()
			change()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if changes != want {
				t.Fatalf("%d changes were noticed, want %d", changes, want)
			}
		}
		end()
		<-done
	})
}

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
		synctest.Test(t, func(t *testing.T) {
			var s watch.Settling
			begun := 0
			for i := range 2 * watch.MaxWrites {
				e := event(t, "UPDATE one=1")
				e.Object = object(t, c.event(i, fmt.Sprint(i)))
				e.Key = engine.KeyOf(e.Object)
				paused, begins := s.Pauses(one, c.causes, []*watch.Event{e})
				s.Seen([]*watch.Event{e})
				if begins {
					begun = i
				}
				if paused != (c.pauses && i >= watch.MaxWrites) {
					t.Fatalf("%s: after %d writes: paused %t", name, i, paused)
				}
				s.Wrote(one, fmt.Sprint(i+1))
				s.Wrote(other, fmt.Sprint(i+1))
				time.Sleep(c.between)
			}
			if (begun == watch.MaxWrites) != c.pauses {
				t.Errorf("%s: paused after %d writes", name, begun)
			}
		})
	}
}

// What is kept of writes is what was written lately.
func TestSettlingForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s watch.Settling
		most := 0
		for i := range 10_000 {
			k := event(t, "UPDATE one=1").Key
			k.Name = fmt.Sprint(i)
			s.Wrote(k, "1")
			most = max(most, reflect.ValueOf(s).FieldByName("written").Len())
			time.Sleep(time.Second)
		}
		if most > 130 {
			t.Errorf("%d objects were kept at once", most)
		}
	})
}
