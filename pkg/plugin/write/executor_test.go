package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// outcomes keeps the result of each object, in the order of the reports.
type outcomes []string

func (o *outcomes) add(r *Result) error {
	*o = append(*o, r.Key.Name+" "+string(r.Outcome))
	return nil
}

// trial is one run over objects of a server.
type trial struct {
	*Executor
	server  *server
	results outcomes
	printed strings.Builder
}

func newTrial(s *server) *trial {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	x := &trial{server: s}
	prompt := NewPrompt(strings.NewReader(""), &x.printed, cluster.Info{Context: "test"})
	prompt.Yes = true
	x.Executor = &Executor{
		Queue: Queue{Report: x.results.add}, Prompt: prompt, Pace: Pace{MaxFailures: 1},
		Verifier: Verifier{
			Writer: &Writer{Server: s, Manager: DefaultFieldManager, DryRun: DryRunNone, Confirm: prompt.ConfirmLoss},
			Access: s, Mapper: mapper, Concurrency: 1, ErrOut: &x.printed,
		},
	}
	return x
}

// run is Run over tasks.
func (x *trial) run(ctx context.Context, tasks []*Task) (Tally, error) {
	x.tasks = append(x.tasks, tasks...)
	return x.Run(ctx)
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
func tasks(names ...string) []*Task {
	var out []*Task
	for _, name := range names {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: name}
		task := &Task{Key: key, Change: func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
			return changed(key, live)
		}}
		shown, err := changed(key, newServer(name).objects[name])
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
	tally   Tally // but for the outcomes, which results are
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
	s := newServer(all()...)
	if c.server != nil {
		c.server(s)
	}
	x := newTrial(s)
	if c.run != nil {
		c.run(x)
	}
	tally, err := x.run(t.Context(), tasks(all()...))
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
			want: executorWant{results: outcomes{"a applied", "b applied", "c applied"}, writes: all(), tally: Tally{Written: 3}},
		},
		"a rehearsal writes nothing": {
			run:  func(x *trial) { x.Writer.DryRun = DryRunServer },
			want: executorWant{results: outcomes{"a planned", "b planned", "c planned"}, tally: Tally{Written: 3}},
		},
		"without a terminal and without --yes nothing is written": {
			run:  func(x *trial) { x.Prompt.Yes = false },
			want: executorWant{err: "there is no terminal to ask on"},
		},
		"what was agreed to before is not asked for": {
			run: func(x *trial) { x.Prompt.Yes, x.Prompt.Confirmed = false, true },
			want: executorWant{
				results: outcomes{"a applied", "b applied", "c applied"}, writes: all(), tally: Tally{Written: 3},
			},
		},
		"--yes does not cover more objects than the user has said": {
			run:  func(x *trial) { x.Prompt.MaxChanges = 2 },
			want: executorWant{err: "3 objects are more than --max-changes 2"},
		},
		"nor is anything verified then": {
			server: func(s *server) { s.rejects = []string{"b"} },
			run:    func(x *trial) { x.Prompt.MaxChanges = 2 },
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
			s := newServer(all()...)
			if c.managed {
				helm(s.objects["a"])
			}
			x := newTrial(s)
			x.Prompt.MaxChanges = 2
			shown := tasks(all()...)
			shown[0].Entry.Impacts = []engine.Impact{{Code: engine.ImpactManaged}}
			_, err := x.run(t.Context(), shown)
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
				results: outcomes{"b failed"}, tally: Tally{Failed: 1, Rejected: 1},
				err: "nothing was written: 1 object of 3 cannot be written",
			},
		},
		"unless it is to be left out": {
			server: func(s *server) { s.rejects = []string{"b"} },
			run:    func(x *trial) { x.Writer.SkipRejected = true },
			want: executorWant{
				results: outcomes{"b failed", "a applied", "c applied"}, writes: []string{"a", "c"},
				tally: Tally{Written: 2, Failed: 1, Rejected: 1},
			},
		},
		"an object that is gone is no failure": {
			server: func(s *server) { delete(s.objects, "b") },
			want: executorWant{
				results: outcomes{"b deleted", "a applied", "c applied"}, writes: []string{"a", "c"}, tally: Tally{Written: 2},
			},
		},
		"what the user may not write is shown before anything is written": {
			server: func(s *server) { s.forbids = []string{"b"} },
			want:   executorWant{err: "you may not write 1 object", printed: "patch   configmaps   shop        b"},
		},
		"an object that something else manages is left as it is": {
			server: func(s *server) { helm(s.objects["a"]) },
			want: executorWant{
				results: outcomes{"a managed", "b applied", "c applied"}, writes: []string{"b", "c"}, tally: Tally{Written: 2, Failed: 1},
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
				tally: Tally{Written: 1, Failed: 1, Rejected: 1, NotTried: 1},
			},
		},
		"what has drifted meanwhile is left alone, as what did before": {
			server: func(s *server) { s.edited = []string{"b"} },
			want: executorWant{
				results: outcomes{"a applied", "b drifted", "c applied"}, writes: []string{"a", "c"},
				tally: Tally{Written: 2, Failed: 1},
			},
		},
		"unless failures do not count": {
			server: func(s *server) { s.fails = []string{"b"} },
			run:    func(x *trial) { x.MaxFailures = 0 },
			want: executorWant{
				results: outcomes{"a applied", "b failed", "c applied"}, writes: []string{"a", "c"},
				tally: Tally{Written: 2, Failed: 1, Rejected: 1},
			},
		},
		"a failure ends the run between batches too": {
			server: func(s *server) { s.fails = []string{"a"} },
			run:    func(x *trial) { x.BatchSize = 1 },
			want: executorWant{
				results: outcomes{"a failed", "b not-tried", "c not-tried"},
				tally:   Tally{Failed: 1, Rejected: 1, NotTried: 2},
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
			s := newServer(all()...)
			c.server(s)
			x := newTrial(s)
			x.MaxFailures = 0
			chain := tasks(all()...) // a triggers b, and b triggers c
			for i, task := range chain[1:] {
				task.Entry.Steps = []engine.Step{{Outcome: engine.Changed, TriggeredBy: &chain[i].Key}}
			}
			for _, task := range chain {
				task.Change = func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
					c, err := changed(task.Key, live)
					c.Steps = task.Entry.Steps
					return c, err
				}
			}
			file := filepath.Join(t.TempDir(), "journal")
			x.Journal = func() (*journal.Writer, error) { return newJournal(file) }
			if _, err := x.run(t.Context(), chain); err != nil {
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

// newJournal begins the journal of a run.
func newJournal(file string) (*journal.Writer, error) {
	began := time.Unix(1, 0)
	return journal.Create(file, journal.Header{
		ID: "1", Command: "apply-existing", FieldManager: DefaultFieldManager, Started: began,
		Run: plan.NewRun(plan.Cluster{Server: "https://127.0.0.1"}, "v1", began),
	})
}

// A journal that cannot be kept ends the run, and is reported once.
func TestExecutorReportsAFailingJournalOnce(t *testing.T) {
	s := newServer("a", "b")
	x := newTrial(s)
	var kept *journal.Writer
	x.Journal = func() (_ *journal.Writer, err error) {
		kept, err = newJournal(filepath.Join(t.TempDir(), "run.jsonl"))
		return kept, err
	}
	x.OnWrite = func(context.Context, *Task, *Result) {
		if err := kept.Close(); err != nil { // nothing can be written to it any more
			t.Error(err)
		}
	}
	_, err := x.run(t.Context(), tasks("a", "b"))
	if err == nil || strings.Count(err.Error(), "journal "+kept.Path()) != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one sentence on the journal", err)
	}
	if !slices.Equal(s.writes, []string{"a"}) {
		t.Errorf("writes %v", s.writes)
	}
}

// pend has a task whose write was begun, and returns the object as that makes it.
func pend(t *testing.T, s *server, task *Task) *unstructured.Unstructured {
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
	s := newServer("a", "b")
	stored, dropped := tasks("a")[0], tasks("b")[0]
	after := pend(t, s, stored)
	after.SetResourceVersion("77")
	s.objects["a"] = after
	pend(t, s, dropped)
	x := newTrial(s)
	x.Prompt.Confirmed = true
	tally, err := x.run(t.Context(), []*Task{stored, dropped})
	if err != nil || tally.Written != 2 {
		t.Errorf("%+v, %v", tally, err)
	}
	if !slices.Equal(s.writes, []string{"b"}) || !slices.Equal(x.results, outcomes{"a applied", "b applied"}) {
		t.Errorf("writes %v, results %v", s.writes, x.results)
	}
}

// A write that was not stored is not taken for one because the policies do not make the change any more.
func TestExecutorDoesNotTakeAWriteForStored(t *testing.T) {
	s := newServer("a")
	task := tasks("a")[0]
	pend(t, s, task)
	x := newTrial(s)
	x.Prompt.Confirmed = true
	task.Change = func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
		return &engine.Change{Subject: task.Key, Before: live, After: live}, nil
	}
	tally, err := x.run(t.Context(), []*Task{task})
	if err != nil || tally.Written != 0 || len(s.writes) > 0 || !slices.Equal(x.results, outcomes{"a drifted"}) {
		t.Errorf("%+v, %v, writes %v, results %v", tally, err, s.writes, x.results)
	}
}

// Where a journal has no values to compare, a write counts as stored if another version of the object has
// nothing left to change.
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
			s := newServer("a")
			task := tasks("a")[0]
			after := pend(t, s, task)
			task.Pending.Fields[0].Withheld = true
			if c.version != "" {
				after.SetResourceVersion(c.version)
				s.objects["a"] = after
			}
			file := filepath.Join(t.TempDir(), "j.jsonl")
			x := newTrial(s)
			w, err := newJournal(file)
			if err = errors.Join(err, w.Plan(task.Entry), w.Begin(), w.Attempt(*task.Pending)); err != nil {
				t.Fatal(err)
			}
			x.Prompt.Confirmed = true
			x.ResumeJournal(w)
			task.Change = func(_ context.Context, live *unstructured.Unstructured) (*engine.Change, error) {
				return &engine.Change{Subject: task.Key, Before: live, After: live}, nil
			}
			if _, err := x.run(t.Context(), []*Task{task}); err != nil || len(s.writes) > 0 || !slices.Equal(x.results, outcomes{c.want}) {
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
	s := newServer("a", "b", "c")
	s.rejects = []string{"b"}
	x := newTrial(s)
	var left outcomes
	x.NotTried = left.add
	if _, err := x.run(t.Context(), tasks("a", "b", "c")); err == nil {
		t.Error("the run did not break off")
	}
	if want := (outcomes{"a not-tried", "c not-tried"}); !slices.Equal(left, want) || !slices.Equal(x.results, outcomes{"b failed"}) {
		t.Errorf("left %v, results %v", left, x.results)
	}
	x = newTrial(newServer("a"))
	x.NotTried = func(*Result) error { return errors.New("a run that does not break off leaves nothing") }
	if _, err := x.run(t.Context(), tasks("a")); err != nil {
		t.Error(err)
	}
}

// server holds ConfigMaps. It publishes no schema, so that it is sent JSON patches,
// and stores nothing of a dry run.
type server struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // by name
	// rejects are the names of objects that it takes no dry run of, and fails of those
	// that it takes no write of.
	rejects, fails []string
	// edited are those that another client writes just before.
	edited []string
	writes []string
	// forbids are the names of objects that the user may not write.
	forbids []string
}

func newServer(names ...string) *server {
	s := &server{objects: map[string]*unstructured.Unstructured{}}
	for i, name := range names {
		u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "before"}}}
		u.SetAPIVersion("v1")
		u.SetKind("ConfigMap")
		u.SetNamespace("shop")
		u.SetName(name)
		u.SetUID(types.UID("uid-" + name))
		u.SetResourceVersion(strconv.Itoa(i + 1))
		s.objects[name] = u
	}
	return s
}

func (s *server) Get(_ context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.objects[key.Name]; u != nil {
		return u.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(configMaps, key.Name)
}

func (s *server) Types(context.Context, schema.GroupVersionKind, bool) (managedfields.TypeConverter, error) {
	return nil, nil
}

func (s *server) Patch(_ context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (p.DryRun && slices.Contains(s.rejects, key.Name)) || (!p.DryRun && slices.Contains(s.fails, key.Name)) {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, key.Name, "no", 0, false)
	}
	if !p.DryRun && slices.Contains(s.edited, key.Name) {
		s.objects[key.Name].Object["data"] = map[string]any{"a": "theirs"}
		s.objects[key.Name].SetResourceVersion("77")
		return nil, apierrors.NewConflict(schema.GroupResource{}, key.Name, errors.New("theirs"))
	}
	answer, err := patched(s.objects[key.Name], p)
	if err != nil || p.DryRun {
		return answer, err
	}
	s.writes = append(s.writes, key.Name)
	answer.SetResourceVersion(answer.GetResourceVersion() + "0")
	s.objects[key.Name] = answer
	return answer.DeepCopy(), nil
}

// Authorize answers whether the user may patch.
func (s *server) Authorize(_ context.Context, r engine.AccessRequest) (engine.AccessDecision, error) {
	return engine.AccessDecision{Allowed: len(s.forbids) == 0 || (r.Name != "" && !slices.Contains(s.forbids, r.Name))}, nil
}

// leaving is a server that goes away with the write of an object.
type leaving struct {
	*server
	with   string // the name of the object
	stores bool   // the write, whose answer is lost
	away   bool
}

var errAway = &url.Error{Op: "Patch", URL: "https://server", Err: io.ErrUnexpectedEOF}

func (s *leaving) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	if s.away {
		return nil, errAway
	}
	return s.server.Get(ctx, key)
}

func (s *leaving) Patch(ctx context.Context, key engine.ObjectKey, p cluster.Patch) (*unstructured.Unstructured, error) {
	if !p.DryRun && key.Name == s.with {
		if s.away = true; s.stores {
			if _, err := s.server.Patch(ctx, key, p); err != nil {
				return nil, err
			}
		}
	}
	if s.away {
		return nil, errAway
	}
	return s.server.Patch(ctx, key, p)
}

// A run that outlasts the absence of its server finds out what became of the writes that were in flight.
func TestExecutorOutlastsTheAbsenceOfItsServer(t *testing.T) {
	for name, c := range map[string]struct {
		stores  bool
		results outcomes
		status  []journal.Status
	}{
		"stored":     {true, outcomes{"a applied", "b applied", "c not-tried"}, []journal.Status{journal.Done, journal.Done, journal.Planned}},
		"not stored": {false, outcomes{"a applied", "b not-tried", "c not-tried"}, []journal.Status{journal.Done, journal.InDoubt, journal.Planned}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &leaving{server: newServer(all()...), with: "b", stores: c.stores}
			x := newTrial(s.server)
			x.Writer.Server, x.Writer.Patience = s, &cluster.Patience{Backoff: wait.Backoff{Steps: 2}}
			path := filepath.Join(t.TempDir(), "journal")
			x.Journal = func() (*journal.Writer, error) { return newJournal(path) }
			waits := 0
			x.Away = func(context.Context, error) bool {
				waits++
				s.away = waits < 3
				return true
			}
			if _, err := x.run(t.Context(), tasks(all()...)); err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(c.results, x.results); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
			if n := len(slices.DeleteFunc(slices.Clone(s.writes), func(name string) bool { return name != "b" })); n != map[bool]int{true: 1}[c.stores] {
				t.Errorf("b was written %d times", n)
			}
			j, err := journal.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			var status []journal.Status
			for i := range j.Entries {
				status = append(status, j.Entries[i].Status())
			}
			if diff := cmp.Diff(c.status, status); diff != "" || waits != 3 {
				t.Errorf("%d waits, the journal has -want +got:\n%s", waits, diff)
			}
		})
	}
}

func TestBatches(t *testing.T) {
	for name, c := range map[string]struct {
		tasks string // each with what triggers its change
		size  int
		want  string
	}{
		"what nothing triggers":                      {"a b c", 9, "a b c"},
		"a size":                                     {"a b c", 2, "a b | c"},
		"a trigger comes after what it triggers":     {"b<a a c<b", 9, "c | b | a"},
		"a trigger that is not written":              {"b<x c<x", 9, "b c"},
		"an object that triggers its own change":     {"a<a b", 9, "a b"},
		"two ways to one trigger":                    {"a b<a c<a d<b,c", 9, "d | b c | a"},
		"a circle":                                   {"a<b b<a c<b", 9, "c | b | a"},
		"a size is for what is written side by side": {"a b<a c<a d<a", 2, "b c | d | a"},
	} {
		t.Run(name, func(t *testing.T) {
			var tasks []*Task
			for text := range strings.FieldsSeq(c.tasks) {
				name, triggers, _ := strings.Cut(text, "<")
				task := &Task{Key: engine.ObjectKey{Name: name, UID: "1"}, Entry: &plan.Entry{}}
				for trigger := range strings.SplitSeq(triggers, ",") {
					step := engine.Step{Outcome: engine.Changed}
					if trigger != "" {
						step.TriggeredBy = &engine.ObjectKey{Name: trigger}
					}
					task.Entry.Steps = append(task.Entry.Steps, step)
				}
				tasks = append(tasks, task)
			}
			var got []string
			(&Queue{tasks: tasks}).arrange(tasks)
			for _, batch := range batches(tasks, c.size) {
				var names []string
				for _, task := range batch {
					names = append(names, task.Key.Name)
				}
				got = append(got, strings.Join(names, " "))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " | ")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestForEachKeepsTheOrder(t *testing.T) {
	const n = 200
	var running, most atomic.Int32
	var taken []int
	err := ForEach(n, 7, func(i int) (int, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		return i * i, nil
	}, func(i, r int) (bool, error) {
		if r != i*i {
			t.Errorf("%d for %d", r, i)
		}
		taken = append(taken, i)
		return false, nil
	})
	if err != nil || len(taken) != n || !slices.IsSorted(taken) || most.Load() > 7 {
		t.Errorf("%v, %d taken, %d side by side", err, len(taken), most.Load())
	}
	if err := ForEach(0, 8, func(int) (int, error) { return 0, errors.New("called") }, nil); err != nil {
		t.Error(err)
	}
}

// What was started before the end is finished and passed on; the rest is never started.
func TestForEachStops(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		fail, take error
		enough     int
	}{
		"by an error": {fail: broken, enough: -1}, "because it is enough": {enough: 10},
		"by one of what takes it, the first": {take: broken, enough: -1},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			started, taken := 0, 0
			err := ForEach(1000, 4, func(i int) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				started++
				if i == 10 {
					return i, c.fail
				}
				return i, nil
			}, func(i, _ int) (bool, error) {
				taken++
				switch {
				case i == 10:
					return i == c.enough, c.take
				case i > 10 && c.take != nil:
					return false, errors.New("another one")
				}
				return false, nil
			})
			if failing := c.fail != nil || c.take != nil; errors.Is(err, broken) != failing || (err != nil) != failing || started != taken || started > 20 || started < 11 {
				t.Errorf("%v: %d started, %d taken", err, started, taken)
			}
		})
	}
}

// A question is one line, whatever the names in it are: what is agreed to is what is asked.
func TestQuestionsWithHostileNames(t *testing.T) {
	for _, text := range hostile.Texts() {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: text.Text}, Namespace: text.Text, Name: text.Text}
		for asked, ask := range map[string]func(*Prompt) error{
			"run": func(p *Prompt) error {
				return p.Confirm(t.Context(), p.question([]*Task{{Key: key, verified: &Verified{}}}, 1))
			},
			"many": func(p *Prompt) error { return p.ConfirmMany(t.Context(), 2) },
			"loss": func(p *Prompt) error { _, err := p.ConfirmLoss(t.Context(), Result{Key: key}); return err },
		} {
			var out strings.Builder
			p := NewPrompt(strings.NewReader("\n"), redact.NewWriter(&out), cluster.Info{Context: text.Text, Server: text.Text, User: text.Text})
			p.terminal, p.MaxChanges = true, 1
			if err := ask(p); err != nil && !errors.Is(err, errDeclined) {
				t.Fatal(err)
			}
			if err := errors.Join(hostile.Terminal(out.String()), hostile.Lines(out.String(), 1), hostile.Runner(out.String())); err != nil {
				t.Errorf("%s, %s %.80q: %v", asked, text.Class, text.Text, err)
			}
		}
	}
}

// Nobody has to answer a question for an interrupt to end the run.
func TestInterruptedQuestions(t *testing.T) {
	t.Parallel()
	for asked, ask := range map[string]func(context.Context, *Prompt) error{
		"run":  func(ctx context.Context, p *Prompt) error { return p.Confirm(ctx, "Write?") },
		"many": func(ctx context.Context, p *Prompt) error { return p.ConfirmMany(ctx, 2) },
	} {
		r, w := io.Pipe()
		t.Cleanup(func() { _ = w.Close() }) // for the goroutine that reads
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := NewPrompt(r, io.Discard, cluster.Info{})
		p.terminal, p.MaxChanges = true, 1
		if err := ask(ctx, p); !errors.Is(err, ErrInterrupted) || err.Error() != "nothing was written: interrupted" {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

// authorizer allows what is listed as "RESOURCE NAMESPACE NAME", "" for all.
type authorizer struct {
	allowed []string
	answers int // before it fails
	fail    error

	mu    sync.Mutex
	asked []string
}

func (a *authorizer) Authorize(_ context.Context, r engine.AccessRequest) (engine.AccessDecision, error) {
	if r.Verb != "patch" || !r.User.Empty() {
		return engine.AccessDecision{}, fmt.Errorf("asked about %+v", r)
	}
	question := fmt.Sprintf("%s %s %s", strings.TrimSuffix(strings.TrimSuffix(r.Resource+"."+r.Group, ".")+"/"+r.Subresource, "/"), r.Namespace, r.Name)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, question)
	if len(a.asked) > a.answers && a.fail != nil {
		return engine.AccessDecision{}, a.fail
	}
	return engine.AccessDecision{Allowed: slices.Contains(a.allowed, question)}, nil
}

func deployment(subresource, namespace, name string) permission.Need {
	resource := strings.TrimSuffix("deployments/"+subresource, "/")
	return permission.Need{Verb: "patch", Group: "apps", Resource: resource, Namespace: namespace, Name: name}
}

func TestMissingPermissions(t *testing.T) {
	needs := []permission.Need{
		deployment("scale", "shop", "web"),
		deployment("", "shop", "web"),
		deployment("", "shop", "db"),
		deployment("", "bank", "db"),
	}
	for name, c := range map[string]struct {
		allowed []string
		want    []permission.Need
		asked   int
	}{
		"all in all namespaces": {[]string{"deployments.apps  ", "deployments.apps/scale  "}, []permission.Need{}, 2},
		"namespace by namespace": {
			[]string{"deployments.apps shop ", "deployments.apps bank ", "deployments.apps/scale shop "}, []permission.Need{}, 5,
		},
		"nothing": {nil, []permission.Need{
			deployment("", "bank", "db"), deployment("", "shop", "web"), deployment("", "shop", "db"), deployment("scale", "shop", "web"),
		}, 9},
		"one by name":         {[]string{"deployments.apps  ", "deployments.apps/scale shop web"}, []permission.Need{}, 4},
		"not the subresource": {[]string{"deployments.apps  "}, []permission.Need{deployment("scale", "shop", "web")}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			a := &authorizer{allowed: c.allowed}
			got, err := MissingPermissions(t.Context(), a, needs, 4)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if len(a.asked) != c.asked {
				t.Errorf("asked %d times: %q", len(a.asked), a.asked)
			}
		})
	}
}

// The answer for the resource is no, and then the connection breaks: the many objects
// are not asked about one by one.
func TestMissingPermissionsStopsAtTheFirstError(t *testing.T) {
	a := &authorizer{fail: errors.New("gone"), answers: 1}
	var needs []permission.Need
	for i := range 1000 {
		needs = append(needs, deployment("", fmt.Sprintf("ns-%d", i), "web"))
	}
	if _, err := MissingPermissions(t.Context(), a, needs, 4); !errors.Is(err, a.fail) || len(a.asked) > 1+2*4 {
		t.Errorf("asked %d times: %v", len(a.asked), err)
	}
}

// creator keeps what it is given, and fails in some namespaces.
type creator struct {
	created []*unstructured.Unstructured
	failing map[string]error
}

func (c *creator) Create(_ context.Context, u *unstructured.Unstructured) error {
	c.created = append(c.created, u)
	return c.failing[u.GetNamespace()]
}

func recorder(c *creator, warnings *[]string) *EventRecorder {
	return &EventRecorder{
		Create: c.Create, Now: func() time.Time { return time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("", 3600)) },
		Warn: func(err error) { *warnings = append(*warnings, err.Error()) },
	}
}

var rule = engine.RuleRef{Dialect: "kyverno", Policy: "add-sec", Rule: "add-sec-rule"}

func eventKey(namespace, name string) engine.ObjectKey {
	gk := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	return engine.ObjectKey{GroupKind: gk, Version: "v1", Namespace: namespace, Name: name, UID: "u", Subresource: "scale"}
}

func TestEventRecorderNamesTheObject(t *testing.T) {
	var c creator
	var warnings []string
	recorder(&c, &warnings).PolicyApplied(t.Context(), eventKey("shop", "foobar"), rule)
	want := map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"metadata": map[string]any{"generateName": "foobar.", "namespace": "shop"},
		"involvedObject": map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "foobar", "uid": "u",
		},
		"type": "Normal", "reason": "PolicyApplied", "message": "policy add-sec/add-sec-rule applied",
		"source": map[string]any{"component": "kubectl-mutate"}, "reportingComponent": "kubectl-mutate",
		"firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z", "count": int64(1),
	}
	if diff := cmp.Diff(want, c.created[0].Object); diff != "" || len(warnings) > 0 {
		t.Errorf("-want +got:\n%s\nwarnings %q", diff, warnings)
	}
}

func TestEventRecorderWarnsOnceForANamespace(t *testing.T) {
	var warnings []string
	c := creator{failing: map[string]error{
		"shop": apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no")),
		"busy": errors.New("connection refused"),
	}}
	r := recorder(&c, &warnings)
	for _, ns := range []string{"shop", "shop", "team", "busy", "busy"} {
		r.PolicyApplied(t.Context(), eventKey(ns, "web"), rule)
	}
	if len(c.created) != 4 {
		t.Errorf("%d attempts, want 4: one in shop and all others", len(c.created))
	}
	if len(warnings) != 3 || !strings.Contains(warnings[0], "apps/Deployment/scale shop/web was changed, but its event could not be recorded: events is forbidden") {
		t.Errorf("warnings %q", warnings)
	}
}
