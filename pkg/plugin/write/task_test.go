package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// appending is an evaluation whose one rule appends to data.a, and to status.a if there
// is one: no two evaluations of what it has changed come to the same.
type appending struct {
	server *fakeServer
	listed func() // is called after the listing
}

func (e appending) Each(ctx context.Context, emit func(*engine.Change) error) (evaluation.Summary, error) {
	live, err := e.server.Get(ctx, key)
	if err != nil {
		return evaluation.Summary{}, err
	}
	c, err := e.Evaluate(ctx, engine.Target{Key: engine.KeyOf(live), Object: live}, true)
	if err == nil {
		err = emit(c)
	}
	if e.listed != nil {
		e.listed()
	}
	return evaluation.Summary{}, err
}

func (appending) Evaluate(_ context.Context, t engine.Target, _ bool) (*engine.Change, error) {
	after := t.Object.DeepCopy()
	for _, part := range []string{"data", "status"} {
		if v, ok, _ := unstructured.NestedString(after.Object, part, "a"); ok {
			after.Object[part].(map[string]any)["a"] = v + "x"
		}
	}
	c := &engine.Change{Subject: t.Key, Target: t, Before: t.Object, After: after, Scoped: true}
	c.Fields = diff.Compare(t.Object.Object, after.Object, diff.Type{})
	c.Steps = []engine.Step{{Rule: engine.RuleRef{Policy: "append"}, Outcome: engine.Changed}}
	return c, nil
}

// A gap is a moment between two looks at the object.
type gap string

const (
	afterListing gap = "after the listing"
	afterShow    gap = "after the show"
	beforeDryRun gap = "before the dry run"
	atQuestion   gap = "during the question"
	beforeWrite  gap = "before the write"
)

// appendingRun is a run of the rule, in one of the ways in which a run can come about.
type appendingRun struct {
	t      *testing.T
	server *fakeServer
	mode   string
	keeps  bool // the object as it was listed
	at     gap
	do     func() // what others do there
	done   bool
}

func (r *appendingRun) reach(at gap) {
	if at == r.at && !r.done {
		r.done = true
		r.do()
	}
}

// Read answers the question.
func (r *appendingRun) Read(p []byte) (int, error) {
	r.reach(atQuestion)
	return copy(p, "y\n"), io.EOF
}

// Authorize lets the user do everything.
func (r *appendingRun) Authorize(context.Context, engine.AccessRequest) (engine.AccessDecision, error) {
	return engine.AccessDecision{Allowed: true}, nil
}

func (r *appendingRun) run() []*Result {
	r.t.Helper()
	outer := r.server.before
	r.server.before = func(n int, p cluster.Patch) error {
		if p.DryRun {
			r.reach(beforeDryRun)
		} else {
			r.reach(beforeWrite)
		}
		if outer != nil {
			return outer(n, p)
		}
		return nil
	}
	defer func() { r.server.before = outer }()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	prompt := NewPrompt(r, io.Discard, cluster.Info{})
	prompt.Yes, prompt.terminal, prompt.Confirmed = r.mode == "--yes", true, r.mode == "--plan"
	var results []*Result
	x := &Executor{
		Queue: Queue{Report: func(r *Result) error { results = append(results, r); return nil }},
		Verifier: Verifier{
			Writer: &Writer{Server: r.server, Manager: DefaultFieldManager, DryRun: DryRunNone, Confirm: prompt.ConfirmLoss},
			Access: r, Mapper: mapper, Concurrency: 1, ErrOut: io.Discard,
		},
		Prompt: prompt, Pace: Pace{MaxFailures: 1},
	}
	if status, _, _ := unstructured.NestedMap(r.server.live.Object, "status"); status != nil {
		x.Writer.HasStatus = func(context.Context, schema.GroupVersionKind) (bool, error) { return true, nil }
	}
	file := filepath.Join(r.t.TempDir(), "run.jsonl")
	x.Journal = func() (*journal.Writer, error) {
		if r.mode != "terminal" {
			r.reach(atQuestion) // which is not asked
		}
		return newJournal(file)
	}
	tasks := r.tasks(x)
	r.reach(afterShow)
	x.tasks = append(x.tasks, tasks...)
	if _, err := x.Run(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return results
}

// tasks shows the changes, by an evaluation or by what was recorded of one.
func (r *appendingRun) tasks(x *Executor) []*Task {
	r.t.Helper()
	var tasks []*Task
	var entries []plan.Entry
	e := appending{server: r.server}
	recorded := r.mode == "--plan" || r.mode == "--resume"
	if !recorded {
		e.listed = func() { r.reach(afterListing) }
	}
	_, err := e.Each(r.t.Context(), func(c *engine.Change) error {
		entries = append(entries, plan.NewEntry(c))
		if task := NewTask(e, c); r.keeps && !recorded {
			x.Keep(task, c)
		} else {
			tasks = append(tasks, task)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if !recorded {
		return tasks
	}
	e.listed = func() { r.reach(afterListing) }
	run := r.planned(entries)
	if r.mode == "--resume" {
		run = r.interrupted(x, entries)
	}
	if err = run.Tasks(r.t.Context(), e, &x.Queue); err != nil {
		r.t.Fatal(err)
	}
	return nil
}

func (r *appendingRun) planned(entries []plan.Entry) *RecordedRun {
	r.t.Helper()
	text, err := json.Marshal(entries)
	if err == nil {
		entries = nil
		err = json.Unmarshal(text, &entries)
	}
	p := &plan.Plan{}
	for i := range entries {
		err = errors.Join(err, entries[i].Validate())
		p.Entries = append(p.Entries, &entries[i])
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return FromPlan(p, "plan.json")
}

func (r *appendingRun) interrupted(x *Executor, entries []plan.Entry) *RecordedRun {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "interrupted.jsonl")
	w, err := newJournal(file)
	for _, e := range entries {
		err = errors.Join(err, w.Plan(&e))
	}
	err = errors.Join(err, w.Begin(), w.Close())
	j, again, failed := journal.Resume(file)
	if err = errors.Join(err, failed); err != nil {
		r.t.Fatal(err)
	}
	x.ResumeJournal(again)
	return FromJournal(j)
}

// managed has Argo CD manage the object.
func managed(s *fakeServer) {
	s.touch()
	s.live.SetLabels(map[string]string{"argocd.argoproj.io/instance": "shop"})
}

// What was shown is what is written, whoever writes the object in whichever moment:
// the change that was shown, or nothing.
func TestWhatWasShownIsWhatIsWritten(t *testing.T) {
	tier.NotShort(t)
	others := map[string]struct {
		do     func(t *testing.T, s *fakeServer)
		want   Outcome
		left   string // data.a
		writes int    // of this run and another one
	}{
		"nobody":               {func(*testing.T, *fakeServer) {}, Applied, "1x", 1},
		"of another field":     {func(_ *testing.T, s *fakeServer) { s.set("keep", "2") }, Applied, "1x", 1},
		"of a new field":       {func(_ *testing.T, s *fakeServer) { s.set("new", "2") }, Applied, "1x", 1},
		"that changes nothing": {func(_ *testing.T, s *fakeServer) { s.touch() }, Applied, "1x", 1},
		"of the same field":    {func(_ *testing.T, s *fakeServer) { s.set("a", "zzz") }, Drifted, "zzz", 0},
		"of what was shown":    {func(_ *testing.T, s *fakeServer) { s.set("a", "1x") }, Drifted, "1x", 0},
		"that runs the same rule": {func(t *testing.T, s *fakeServer) {
			r := &appendingRun{t: t, server: s, mode: "--yes"}
			if results := r.run(); len(results) != 1 || results[0].Outcome != Applied {
				t.Errorf("the other run: %+v", results)
			}
		}, Drifted, "1x", 1},
		"that manages it from now on": {func(_ *testing.T, s *fakeServer) { managed(s) }, Managed, "1", 0},
		"that deletes it":             {func(_ *testing.T, s *fakeServer) { s.live = nil }, Deleted, "", 0},
		"that deletes and creates it": {func(_ *testing.T, s *fakeServer) { s.replace(configMap, "u-2") }, Replaced, "1", 0},
	}
	for name, c := range others {
		for _, mode := range []string{"--yes", "terminal", "--plan", "--resume"} {
			for _, at := range []gap{afterListing, afterShow, beforeDryRun, atQuestion, beforeWrite} {
				for _, keeps := range []bool{false, true} {
					t.Run(fmt.Sprintf("a writer %s, %s, %s, %t", name, at, mode, keeps), func(t *testing.T) {
						s := newFakeServer(t, configMap)
						r := &appendingRun{t: t, server: s, mode: mode, keeps: keeps, at: at, do: func() { c.do(t, s) }}
						results := r.run()
						if len(results) != 1 || results[0].Outcome != c.want || (results[0].Err != nil) != (c.want == Drifted || c.want == Managed) {
							t.Fatalf("results %+v, want one that is %s", results, c.want)
						}
						left := ""
						if s.live != nil {
							left, _, _ = unstructured.NestedString(s.live.Object, "data", "a")
						}
						if left != c.left || s.writes != c.writes {
							t.Errorf("left %q after %d writes, want %q after %d", left, s.writes, c.left, c.writes)
						}
						if !r.done && mode != "--resume" {
							t.Error("nobody came")
						}
					})
				}
			}
		}
	}
}

// An object is not used as it was listed where a request that is made of it might be stored though it has
// changed, or means another version.
func TestWhichListedObjectsAreUsed(t *testing.T) {
	server := newFakeServer(t, configMap)
	for name, c := range map[string]struct {
		change func(*Task, *unstructured.Unstructured)
		want   bool
	}{
		"one like its task":    {func(*Task, *unstructured.Unstructured) {}, true},
		"of another version":   {func(_ *Task, u *unstructured.Unstructured) { u.SetAPIVersion("v2") }, false},
		"without its revision": {func(_ *Task, u *unstructured.Unstructured) { u.SetResourceVersion("") }, false},
		"without its UID":      {func(_ *Task, u *unstructured.Unstructured) { u.SetUID("") }, false},
		"for its status":       {func(t *Task, _ *unstructured.Unstructured) { t.Endpoints = []string{"", "status"} }, false},
		"for a subresource":    {func(t *Task, _ *unstructured.Unstructured) { t.Key.Subresource = "scale" }, false},
		"written in doubt":     {func(t *Task, _ *unstructured.Unstructured) { t.Pending = &journal.Attempt{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := server.live.DeepCopy()
			task := &Task{Key: engine.KeyOf(u), Endpoints: []string{""}}
			c.change(task, u)
			if got := task.mayUse(u); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// An object that nobody writes after the listing takes two requests, the dry run and the write; one that has
// changed, or of which no dry run shows that it has not, is read again.
func TestRequestsOfAnObject(t *testing.T) {
	const statusOnly = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {keep: "1"}, status: {a: "1"}}`
	for name, c := range map[string]struct {
		do       func(*fakeServer)
		manifest string
		refuses  error // dry runs
		want     string
	}{
		"as it was listed":                  {func(*fakeServer) {}, configMap, nil, "dry run, write"},
		"changed":                           {func(s *fakeServer) { s.set("new", "2") }, configMap, nil, "dry run, get, dry run, write"},
		"gone":                              {func(s *fakeServer) { s.live = nil }, configMap, nil, "dry run, get"},
		"drifted":                           {func(s *fakeServer) { s.set("a", "2") }, configMap, nil, "dry run, get"},
		"drifted, and no dry run shows it":  {func(s *fakeServer) { s.set("a", "2") }, configMap, noDryRun, "dry run, get"},
		"drifted beside its changed status": {func(s *fakeServer) { s.set("a", "2") }, statusOnly, nil, "get"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, c.manifest)
			var sent []string
			r := &appendingRun{t: t, server: s, mode: "--yes", keeps: true, at: afterShow, do: func() {
				c.do(s)
				s.read = func(int) (*unstructured.Unstructured, error) {
					sent = append(sent, "get")
					return nil, nil // the server answers
				}
			}}
			s.before = func(_ int, p cluster.Patch) error {
				sent = append(sent, map[bool]string{true: "dry run", false: "write"}[p.DryRun])
				if p.DryRun {
					return c.refuses
				}
				return nil
			}
			r.run()
			if got := strings.Join(sent, ", "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The part of a change that is sent to /status is written after the other one, which
// is then no part of what is to be made any more.
func TestBothPartsOfWhatWasShownAreWritten(t *testing.T) {
	const both = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: "1"}, status: {a: "1"}}`
	for _, mode := range []string{"--yes", "terminal", "--plan", "--resume"} {
		t.Run(mode, func(t *testing.T) {
			s := newFakeServer(t, both)
			results := (&appendingRun{t: t, server: s, mode: mode}).run()
			if len(results) != 1 || results[0].Outcome != Applied || results[0].Status == nil || results[0].Status.Outcome != Applied {
				t.Fatalf("results %+v", results)
			}
			if got := fmt.Sprint(s.live.Object["data"], s.live.Object["status"]); got != "map[a:1x] map[a:1x]" {
				t.Errorf("left %s", got)
			}
			for want, others := range map[Outcome]func(*fakeServer){
				Managed: managed,
				Drifted: func(s *fakeServer) {
					s.touch()
					s.live.Object["status"].(map[string]any)["a"] = "zzz"
				},
			} {
				s := newFakeServer(t, both)
				writes := 0
				s.after = func(_ int, p cluster.Patch) error {
					if writes++; p.DryRun {
						writes = 0
					}
					if writes == 1 { // after the object itself was written
						others(s)
					}
					return nil
				}
				results = (&appendingRun{t: t, server: s, mode: mode}).run()
				if results[0].Outcome != Applied || results[0].Status.Outcome != want {
					t.Errorf("results %+v, %+v, want one that is %s", results[0], results[0].Status, want)
				}
				left := map[Outcome]string{Managed: "map[a:1x] map[a:1]", Drifted: "map[a:1x] map[a:zzz]"}[want]
				if got := fmt.Sprint(s.live.Object["data"], s.live.Object["status"]); got != left {
					t.Errorf("left %s, want %s", got, left)
				}
			}
		})
	}
}

// Rules say that an object is as they want it only if they match it and leave it as it is.
func TestTaskIsMet(t *testing.T) {
	one, other := engine.RuleRef{Policy: "p", Rule: "one"}, engine.RuleRef{Policy: "p", Rule: "other"}
	for name, c := range map[string]struct {
		task  Task
		steps []engine.Step
		want  bool
	}{
		"unchanged":              {Task{Rules: []engine.RuleRef{one}}, []engine.Step{{Rule: one, Outcome: engine.Unchanged}}, true},
		"skipped":                {Task{Rules: []engine.RuleRef{one}}, []engine.Step{{Rule: one, Outcome: engine.Skipped}}, true},
		"not matched":            {Task{Rules: []engine.RuleRef{one}}, []engine.Step{{Rule: one, Outcome: engine.NotMatched}}, false},
		"failed":                 {Task{Rules: []engine.RuleRef{one}}, []engine.Step{{Rule: one, Outcome: engine.Failed}}, false},
		"not met any more":       {Task{Rules: []engine.RuleRef{one}}, nil, false},
		"one of two not matched": {Task{Rules: []engine.RuleRef{one, other}}, []engine.Step{{Rule: one, Outcome: engine.Unchanged}}, false},
		"without rules":          {Task{}, nil, true},
	} {
		if got := c.task.isMet(&engine.Change{Steps: c.steps}); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	undo := Task{}
	if undo.isMet(&engine.Change{Fields: []engine.FieldChange{{}}}) {
		t.Error("an object that is still to be changed is met")
	}
}

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
	file := filepath.Join(t.TempDir(), "run.jsonl")
	w, err := newJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"done", "failed", "not-begun", "in-doubt", "status-left", "status-in-doubt"} {
		err = errors.Join(err, w.Plan(new(planned(name))))
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
