package watch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

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
