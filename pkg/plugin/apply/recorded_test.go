package apply

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// planned changes a field of the object, and one of its status.
func planned(name string) plan.Entry {
	state := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"x": value}, "status": map[string]any{"x": value},
		}}
	}
	return plan.Entry{
		Object:  engine.KeyOf(state("")),
		Partial: diff.Between(state("before"), state("after"), diff.Type{}),
	}
}

// interrupted is the journal of a run that was cut off.
func interrupted(t *testing.T) *journal.Journal {
	t.Helper()
	file, began := filepath.Join(t.TempDir(), "run.jsonl"), time.Unix(1, 0)
	w, err := journal.Create(file, journal.Header{
		ID: "1", Command: "apply-existing", FieldManager: "kubectl-mutate", Started: began,
		Run: plan.NewRun(plan.Cluster{Server: "https://127.0.0.1"}, "v1", began),
	}, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"done", "failed", "not-begun", "in-doubt", "status-left", "status-in-doubt"} {
		err = errors.Join(err, w.Plan(planned(name)))
	}
	err = errors.Join(err, w.Begin(),
		w.Attempt(journal.Attempt{Entry: 0}), w.Result(journal.Result{Entry: 0, Outcome: "applied", Written: true}),
		w.Attempt(journal.Attempt{Entry: 1}), w.Result(journal.Result{Entry: 1, Outcome: "failed", Failed: true}),
		w.Attempt(journal.Attempt{Entry: 3}),
		w.Attempt(journal.Attempt{Entry: 4}), w.Result(journal.Result{Entry: 4, Outcome: "applied", Written: true, More: true}),
		w.Attempt(journal.Attempt{Entry: 5}), w.Result(journal.Result{Entry: 5, Outcome: "applied", Written: true, More: true}),
		w.Attempt(journal.Attempt{Entry: 5, Subresource: "status"}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// What has a result is left alone, and of the others only what is not known to be
// stored is made.
func TestFromJournal(t *testing.T) {
	r := FromJournal(interrupted(t))
	if r.Written != 3 || r.Failed != 1 {
		t.Errorf("%s: %d written, %d failed", r.Name, r.Written, r.Failed)
	}
	type rest struct {
		name   string
		mark   int
		fields int
		begun  bool
	}
	want := []rest{
		{"not-begun", 2, 2, false}, {"in-doubt", 3, 2, true}, {"status-left", 4, 1, false}, {"status-in-doubt", 5, 1, true},
	}
	if len(r.tasks) != len(want) {
		t.Fatalf("%d entries are left, want %d", len(r.tasks), len(want))
	}
	for i, w := range want {
		e := r.tasks[i]
		got := rest{e.Key.Name, e.JournalIndex, len(e.Entry.Fields), e.Pending != nil}
		if got != w {
			t.Errorf("left %+v, want %+v", got, w)
		}
	}
}
