package journal_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-mutate/kubectl-mutate/internal/heap"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
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
	if d := cmp.Diff(statuses(want), statuses(got)); d != "" {
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

// A run over very many objects that was interrupted can be resumed: what was planned and what came of it stays in files.
func TestResumeKeepsLittle(t *testing.T) {
	const objects, most = 8000, 1000
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
	for i := range objects {
		check(t, w.Result(journal.Result{Entry: i, Outcome: "applied", Written: true, ResourceVersion: fmt.Sprint(i), Partial: own(i)}))
	}
	check(t, w.Close())
	before := heap.InUse()
	j, w, err := journal.Resume(path, options())
	check(t, err)
	defer w.Close() //nolint:errcheck // nothing was written
	if each := (heap.InUse() - before) / objects; each > most {
		t.Errorf("%d bytes for each object, want at most %d", each, most)
	} else {
		t.Logf("%d bytes for each object", each)
	}
	check(t, j.Close())
}
