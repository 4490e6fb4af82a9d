package journal_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-mutate/kubectl-mutate/internal/heap"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// What is resumed says of each entry what Read says: how far it has come, the write in doubt, and what was planned.
func TestResumeIsRead(t *testing.T) {
	path, _ := written(t)
	want, err := journal.Read(path)
	check(t, err)
	got, w, err := journal.Resume(path, options())
	check(t, err)
	defer w.Close()   //nolint:errcheck // nothing was written
	defer got.Close() //nolint:errcheck // it is needed no more
	if d := cmp.Diff(statuses(t, want), statuses(t, got)); d != "" {
		t.Errorf("(-read +resumed):\n%s", d)
	}
	for i := range want.Entries {
		a, failed := want.Planned(i)
		check(t, failed)
		b, failed := got.Planned(i)
		check(t, failed)
		d := cmp.Diff(a, b, cmpopts.IgnoreUnexported(plan.Entry{})) + cmp.Diff(want.Entries[i].Doubt(), got.Entries[i].Doubt())
		if d != "" || len(want.Entries[i].Results) != len(got.Entries[i].Results) {
			t.Errorf("%s (-read +resumed):\n%s", a.Object, d)
		}
	}
}

// A run over very many objects can be listed, and resumed if it was interrupted: what was planned and what came of it stays in files,
// also while the journal is read.
func TestReadingKeepsLittle(t *testing.T) {
	const objects, most = 8000, 400
	path := filepath.Join(t.TempDir(), "j.jsonl")
	w, err := journal.Create(path, header(t), options())
	check(t, err)
	own := func(i int) diff.Partial { return valueSet(fmt.Sprint("old ", i), fmt.Sprint("new ", i)) }
	for i := range objects {
		e := entry(fmt.Sprint("c", i))
		e.Partial = own(i)
		check(t, w.Plan(e))
	}
	check(t, w.Begin())
	var workers sync.WaitGroup // which share the waits for the disk
	for worker := range 100 {
		workers.Go(func() {
			for i := worker; i < objects; i += 100 {
				attempt := journal.Attempt{Entry: i, ResourceVersion: fmt.Sprint(i), Method: request.Apply, Partial: own(i)}
				result := journal.Result{Entry: i, Outcome: "applied", Written: true, ResourceVersion: fmt.Sprint(i), Partial: own(i)}
				if err := errors.Join(w.Attempt(attempt), w.Result(result)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	check(t, w.Close())
	for name, parse := range map[string]func(io.Reader) (*journal.Journal, error){"resumed": journal.ParseToResume, "listed": journal.ParseBriefly} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(path)
			check(t, err)
			defer f.Close() //nolint:errcheck // it was only read
			in := &measured{Reader: f, before: heap.InUse()}
			j, err := parse(in)
			check(t, err)
			defer j.Close() //nolint:errcheck // it is needed no more
			if each := in.kept / objects; each > most {
				t.Errorf("%d bytes for each object, want at most %d", each, most)
			} else {
				t.Logf("%d bytes for each object", each)
			}
			if n := j.Count()[journal.Done]; n != objects {
				t.Errorf("%d objects are done", n)
			}
		})
	}
}

// measured tells what is kept of it when its end is reached.
type measured struct {
	io.Reader
	before, kept int64
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		m.kept = heap.InUse() - m.before
	}
	return n, err
}
