package apply_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// outcomes keeps the result of each object, in the order of the reports.
type outcomes []string

func (o *outcomes) add(r *apply.Result) error {
	*o = append(*o, r.Key.Name+" "+string(r.Outcome))
	return nil
}

// trial is one run over objects of a server.
type trial struct {
	*apply.Executor
	server  *server
	results outcomes
	printed strings.Builder
}

func newTrial(s *server) *trial {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	x := &trial{server: s}
	prompt := apply.NewPrompt(strings.NewReader(""), &x.printed, cluster.Info{Context: "test"})
	prompt.Yes = true
	x.Executor = &apply.Executor{
		Options: apply.Options{Concurrency: 1, MaxFailures: 1},
		Writer:  &apply.Writer{Server: s, Manager: apply.DefaultFieldManager, DryRun: apply.DryRunNone},
		Prompt:  prompt, Hooks: apply.Hooks{Report: x.results.add}, Access: s, Mapper: mapper, ErrOut: &x.printed,
	}
	return x
}

// changed is what tasks make of an object: it changes data.a, from "before" to "after".
func changed(key engine.ObjectKey, live *unstructured.Unstructured) (*engine.Change, error) {
	want := live.DeepCopy()
	err := unstructured.SetNestedField(want.Object, "after", "data", "a")
	c := &engine.Change{Subject: key, Before: live, After: want}
	c.Fields = diff.Compare(live.Object, want.Object, diff.Type{})
	return c, err
}

// tasks change data.a of objects.
func tasks(names ...string) []*apply.Task {
	var out []*apply.Task
	for _, name := range names {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: name}
		task := &apply.Task{Key: key, Change: func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
			return changed(key, live)
		}}
		shown, err := changed(key, newServer(nil, name).objects[name])
		if err != nil {
			panic(err)
		}
		entry := plan.NewEntry(shown)
		task.Entry = &entry
		out = append(out, task)
	}
	return out
}

// executorCase is a run over the objects a, b and c, and what comes of it.
type executorCase struct {
	server func(*server)
	run    func(*trial)
	want   executorWant
}

type executorWant struct {
	results outcomes
	writes  []string
	tally   apply.Tally // but for the outcomes, which results are
	err     string
	printed string
}

// all returns the names of the objects of an executorCase.
func all() []string { return []string{"a", "b", "c"} }

func testExecutor(t *testing.T, cases map[string]executorCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, c.check)
	}
}

func (c executorCase) check(t *testing.T) {
	s := newServer(t, all()...)
	if c.server != nil {
		c.server(s)
	}
	x := newTrial(s)
	if c.run != nil {
		c.run(x)
	}
	tally, err := x.Run(t.Context(), tasks(all()...))
	tally.Outcomes = nil
	if diff := cmp.Diff(c.want.tally, tally); diff != "" {
		t.Errorf("tally -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(c.want.results, x.results); diff != "" {
		t.Errorf("results -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(c.want.writes, s.writes); diff != "" {
		t.Errorf("writes -want +got:\n%s", diff)
	}
	if (err == nil) != (c.want.err == "") || (err != nil && !strings.Contains(err.Error(), c.want.err)) {
		t.Errorf("error %v, want %q", err, c.want.err)
	}
	if !strings.Contains(x.printed.String(), c.want.printed) {
		t.Errorf("printed %q, want %q", x.printed.String(), c.want.printed)
	}
}

func TestExecutorAsks(t *testing.T) {
	testExecutor(t, map[string]executorCase{
		"everything is written": {
			want: executorWant{results: outcomes{"a applied", "b applied", "c applied"}, writes: all(), tally: apply.Tally{Written: 3}},
		},
		"a rehearsal writes nothing": {
			run:  func(x *trial) { x.Writer.DryRun = apply.DryRunServer },
			want: executorWant{results: outcomes{"a planned", "b planned", "c planned"}, tally: apply.Tally{Written: 3}},
		},
		"without a terminal and without --yes nothing is written": {
			run:  func(x *trial) { x.Prompt.Yes = false },
			want: executorWant{err: "there is no terminal to ask on"},
		},
		"what was agreed to before is not asked for": {
			run: func(x *trial) { x.Prompt.Yes, x.Confirmed = false, true },
			want: executorWant{
				results: outcomes{"a applied", "b applied", "c applied"}, writes: all(), tally: apply.Tally{Written: 3},
			},
		},
		"--yes does not cover more objects than the user has said": {
			run:  func(x *trial) { x.MaxChanges = 2 },
			want: executorWant{err: "3 objects are more than --max-changes 2"},
		},
		"nor is anything verified then": {
			server: func(s *server) { s.rejects = []string{"b"} },
			run:    func(x *trial) { x.MaxChanges = 2 },
			want:   executorWant{err: "3 objects are more than --max-changes 2"},
		},
	})
}

// What something else managed when it was shown, and not any more, counts when it is written.
func TestExecutorCountsWhatIsManagedNoMore(t *testing.T) {
	for name, c := range map[string]struct {
		managed bool // still
		writes  []string
		err     string
	}{
		"it is left alone": {true, []string{"b", "c"}, ""},
		"it is written":    {false, nil, "3 objects are more than --max-changes 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, all()...)
			if c.managed {
				helm(s.objects["a"])
			}
			x := newTrial(s)
			x.MaxChanges = 2
			shown := tasks(all()...)
			shown[0].Entry.Impacts = []engine.Impact{{Code: engine.ImpactManaged}}
			_, err := x.Run(t.Context(), shown)
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(c.writes, s.writes); diff != "" {
				t.Errorf("writes -want +got:\n%s", diff)
			}
		})
	}
}

// helm marks an object as one of a release.
func helm(u *unstructured.Unstructured) {
	u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": "shop"})
}

func TestExecutorLeavesObjectsOut(t *testing.T) {
	testExecutor(t, map[string]executorCase{
		"one object that the server rejects keeps all from being written": {
			server: func(s *server) { s.rejects = []string{"b"} },
			want: executorWant{
				results: outcomes{"b failed"}, tally: apply.Tally{Failed: 1, Rejected: 1},
				err: "nothing was written: 1 object of 3 cannot be written",
			},
		},
		"unless it is to be left out": {
			server: func(s *server) { s.rejects = []string{"b"} },
			run:    func(x *trial) { x.SkipRejected = true },
			want: executorWant{
				results: outcomes{"b failed", "a applied", "c applied"}, writes: []string{"a", "c"},
				tally: apply.Tally{Written: 2, Failed: 1, Rejected: 1},
			},
		},
		"an object that is gone is no failure": {
			server: func(s *server) { delete(s.objects, "b") },
			want: executorWant{
				results: outcomes{"b deleted", "a applied", "c applied"}, writes: []string{"a", "c"}, tally: apply.Tally{Written: 2},
			},
		},
		"what the user may not write is shown before anything is written": {
			server: func(s *server) { s.forbids = []string{"b"} },
			want:   executorWant{err: "you may not write 1 object", printed: "patch   configmaps   shop        b"},
		},
		"an object that something else manages is left as it is": {
			server: func(s *server) { helm(s.objects["a"]) },
			want: executorWant{
				results: outcomes{"a managed", "b applied", "c applied"}, writes: []string{"b", "c"}, tally: apply.Tally{Written: 2, Failed: 1},
			},
		},
	})
}

func TestExecutorStopsAtFailures(t *testing.T) {
	testExecutor(t, map[string]executorCase{
		"after a failed write no further one is started": {
			server: func(s *server) { s.fails = []string{"b"} },
			want: executorWant{
				results: outcomes{"a applied", "b failed", "c not-tried"}, writes: []string{"a"},
				tally: apply.Tally{Written: 1, Failed: 1, Rejected: 1, NotTried: 1},
			},
		},
		"unless failures do not count": {
			server: func(s *server) { s.fails = []string{"b"} },
			run:    func(x *trial) { x.MaxFailures = 0 },
			want: executorWant{
				results: outcomes{"a applied", "b failed", "c applied"}, writes: []string{"a", "c"},
				tally: apply.Tally{Written: 2, Failed: 1, Rejected: 1},
			},
		},
		"a failure ends the run between batches too": {
			server: func(s *server) { s.fails = []string{"a"} },
			run:    func(x *trial) { x.BatchSize = 1 },
			want: executorWant{
				results: outcomes{"a failed", "b not-tried", "c not-tried"},
				tally:   apply.Tally{Failed: 1, Rejected: 1, NotTried: 2},
			},
		},
	})
}

// What was not made and might not be triggered any more holds back what triggers it.
func TestExecutorHoldsTriggersBack(t *testing.T) {
	for name, c := range map[string]struct {
		server func(*server)
		want   outcomes
		writes []string
	}{
		"all can be written":        {func(*server) {}, outcomes{"c applied", "b applied", "a applied"}, []string{"c", "b", "a"}},
		"a write fails":             {func(s *server) { s.fails = []string{"c"} }, outcomes{"c failed", "b failed", "a failed"}, nil},
		"one in between fails":      {func(s *server) { s.fails = []string{"b"} }, outcomes{"c applied", "b failed", "a failed"}, []string{"c"}},
		"what has drifted":          {func(s *server) { s.objects["c"].Object["data"] = map[string]any{"a": "other"} }, outcomes{"c drifted", "b failed", "a failed"}, nil},
		"what is gone":              {func(s *server) { delete(s.objects, "c") }, outcomes{"c deleted", "b applied", "a applied"}, []string{"b", "a"}},
		"the trigger itself is not": {func(s *server) { s.fails = []string{"a"} }, outcomes{"c applied", "b applied", "a failed"}, []string{"c", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, all()...)
			c.server(s)
			x := newTrial(s)
			x.MaxFailures = 0
			chain := tasks(all()...) // a triggers b, and b triggers c
			for i, task := range chain[1:] {
				task.Entry.Steps = []engine.Step{{Outcome: engine.Changed, Trigger: chain[i].Key}}
			}
			for _, task := range chain {
				task.Change = func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
					c, err := changed(task.Key, live)
					c.Steps = task.Entry.Steps
					return c, err
				}
			}
			file := filepath.Join(t.TempDir(), "journal")
			x.Journal = func() (*journal.Writer, error) { return newJournal(file, x) }
			if _, err := x.Run(t.Context(), chain); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, x.results); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.writes, s.writes); diff != "" {
				t.Errorf("writes -want +got:\n%s", diff)
			}
		})
	}
}

func newJournal(file string, x *trial) (*journal.Writer, error) {
	began := time.Unix(1, 0)
	return journal.Create(file, journal.Header{
		ID: "1", Command: "apply-existing", FieldManager: apply.DefaultFieldManager, Started: began,
		Run: plan.NewRun(plan.Cluster{Server: "https://127.0.0.1"}, "v1", began),
	}, journal.Options{})
}

// A journal that cannot be kept ends the run, and is reported once.
func TestExecutorReportsAFailingJournalOnce(t *testing.T) {
	s := newServer(t, "a", "b")
	x := newTrial(s)
	var kept *journal.Writer
	x.Journal = func() (_ *journal.Writer, err error) {
		kept, err = newJournal(filepath.Join(t.TempDir(), "run.jsonl"), x)
		return kept, err
	}
	x.OnWrite = func(context.Context, *apply.Task, *apply.Result) {
		if err := kept.Close(); err != nil { // nothing can be written to it any more
			t.Error(err)
		}
	}
	_, err := x.Run(t.Context(), tasks("a", "b"))
	if err == nil || strings.Count(err.Error(), "journal "+kept.Path()) != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one sentence on the journal", err)
	}
	if !slices.Equal(s.writes, []string{"a"}) {
		t.Errorf("writes %v", s.writes)
	}
}

// pend has a task whose write was begun, and returns the object as that makes it.
func pend(t *testing.T, s *server, task *apply.Task) *unstructured.Unstructured {
	t.Helper()
	live, err := s.Get(t.Context(), task.Key)
	if err != nil {
		t.Fatal(err)
	}
	change, err := changed(task.Key, live)
	if err != nil {
		t.Fatal(err)
	}
	task.Pending = &journal.Attempt{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Partial: diff.PartialOf(change)}
	return change.After
}

// A write of which a journal has no result is looked up before it is made again.
func TestExecutorLooksUpPendingWrites(t *testing.T) {
	s := newServer(t, "a", "b")
	stored, dropped := tasks("a")[0], tasks("b")[0]
	after := pend(t, s, stored)
	after.SetResourceVersion("77")
	s.objects["a"] = after
	pend(t, s, dropped)
	x := newTrial(s)
	x.Confirmed = true
	tally, err := x.Run(t.Context(), []*apply.Task{stored, dropped})
	if err != nil || tally.Written != 2 {
		t.Errorf("%+v, %v", tally, err)
	}
	if !slices.Equal(s.writes, []string{"b"}) || !slices.Equal(x.results, outcomes{"a applied", "b applied"}) {
		t.Errorf("writes %v, results %v", s.writes, x.results)
	}
}

// A write that was not stored is not taken for one because the policies do not make the change any more.
func TestExecutorDoesNotTakeAWriteForStored(t *testing.T) {
	s := newServer(t, "a")
	task := tasks("a")[0]
	pend(t, s, task)
	x := newTrial(s)
	x.Confirmed = true
	task.Change = func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		return &engine.Change{Subject: task.Key, Before: live, After: live}, nil
	}
	tally, err := x.Run(t.Context(), []*apply.Task{task})
	if err != nil || tally.Written != 0 || len(s.writes) > 0 || !slices.Equal(x.results, outcomes{"a drifted"}) {
		t.Errorf("%+v, %v, writes %v, results %v", tally, err, s.writes, x.results)
	}
}

// Where a journal has no values to compare, a write counts as stored if another version of the object has nothing left to change.
func TestExecutorTakesAWithheldWriteForStored(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		want    string
		status  journal.Status
	}{
		"another version":  {"77", "a applied", journal.Done},
		"the same version": {"", "a drifted", journal.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "a")
			task := tasks("a")[0]
			after := pend(t, s, task)
			task.Pending.Fields[0].Withheld = true
			if c.version != "" {
				after.SetResourceVersion(c.version)
				s.objects["a"] = after
			}
			file := filepath.Join(t.TempDir(), "j.jsonl")
			x := newTrial(s)
			w, err := newJournal(file, x)
			if err = errors.Join(err, w.Plan(*task.Entry), w.Begin(), w.Attempt(*task.Pending)); err != nil {
				t.Fatal(err)
			}
			x.Confirmed = true
			x.ResumeJournal(w)
			task.Change = func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
				return &engine.Change{Subject: task.Key, Before: live, After: live}, nil
			}
			if _, err := x.Run(t.Context(), []*apply.Task{task}); err != nil || len(s.writes) > 0 || !slices.Equal(x.results, outcomes{c.want}) {
				t.Errorf("%v, writes %v, results %v", err, s.writes, x.results)
			}
			j, err := journal.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := j.Entries[0].Status(); got != c.status {
				t.Errorf("the journal has %s", got)
			}
		})
	}
}

// Of a run that stops early, every object is reported: with its result, or as not tried.
func TestExecutorReportsWhatWasNotTried(t *testing.T) {
	s := newServer(t, "a", "b", "c")
	s.rejects = []string{"b"}
	x := newTrial(s)
	var left outcomes
	x.NotTried = left.add
	if _, err := x.Run(t.Context(), tasks("a", "b", "c")); err == nil {
		t.Error("the run did not break off")
	}
	if want := (outcomes{"a not-tried", "c not-tried"}); !slices.Equal(left, want) || !slices.Equal(x.results, outcomes{"b failed"}) {
		t.Errorf("left %v, results %v", left, x.results)
	}
	x = newTrial(newServer(t, "a"))
	x.NotTried = func(*apply.Result) error { return errors.New("a run that does not break off leaves nothing") }
	if _, err := x.Run(t.Context(), tasks("a")); err != nil {
		t.Error(err)
	}
}
