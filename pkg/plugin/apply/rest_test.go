package apply

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/internal/heap"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// verifiedTask is a task whose change, which no other task has, is verified.
func verifiedTask(x *Executor, i int) *queued {
	name := fmt.Sprintf("object-%05d", i)
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"mode": "lax", "index": fmt.Sprint(i), "count": int64(i), "list": []any{"a", name}},
		"metadata": map[string]any{
			"namespace": "shop", "name": name, "uid": fmt.Sprintf("%08d-5f3c-4b0e-9f7e-%012d", i, 7*i), "resourceVersion": fmt.Sprint(1000 + i),
			"labels": map[string]any{"app": name}, "managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update", "time": "2026-01-02T15:04:05Z"}},
		},
	}}
	after := live.DeepCopy()
	after.SetLabels(map[string]string{"app": name, "team": "proof", "of": name})
	after.Object["data"] = map[string]any{"mode": "strict", "index": fmt.Sprint(i), "count": int64(i) + 1, "list": []any{"a", "b", name}}
	rule := engine.RuleRef{Dialect: "kyverno", Policy: "labels", Rule: "team"}
	c := &engine.Change{
		Subject: engine.KeyOf(live), Before: live, After: after, Fields: diff.Compare(live.Object, after.Object, diff.Type{}), Scoped: true,
		Target: engine.Target{Key: engine.KeyOf(live), Object: live}, Steps: []engine.Step{{Rule: rule, Outcome: engine.Changed}},
	}
	x.Keep(NewTask(nil, c), c)
	t := x.queue[len(x.queue)-1]
	if err := x.wake(t); err != nil {
		panic(err)
	}
	x.take(t)
	t.verified = &Verified{
		Result: Result{
			Key: t.Key, Outcome: Planned, Method: request.Apply, Touched: diff.PartialOf(c).Own(),
			Takeovers: []request.Takeover{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}},
		},
		resourceVersion: live.GetResourceVersion(),
		patch: cluster.Patch{
			Type: types.ApplyPatchType, FieldManager: DefaultFieldManager, Force: true,
			Body: fmt.Appendf(nil, `{"apiVersion":"v1","data":{"mode":"strict"},"kind":"ConfigMap","metadata":{"labels":{"of":%[1]q,"team":"proof"},"name":%[1]q,"uid":%[2]q}}`, name, live.GetUID()),
		},
	}
	return t
}

func TestATaskComesOutOfRestAsItWas(t *testing.T) {
	x := &Executor{Writer: &Writer{}}
	x.rest(verifiedTask(x, 1)) // with which the others share what they can
	for name, change := range map[string]func(*queued){
		"as it was":                   func(*queued) {},
		"not verified":                func(t *queued) { t.verified = nil },
		"with another answer":         func(t *queued) { t.verified.answered = t.verified.Touched; t.verified.Method = request.JSONPatch },
		"with an impact and a reason": func(t *queued) { t.Entry.Impacts, t.Entry.MethodReason = []plan.Impact{{Code: "x"}}, "removal" },
		"of another shape":            func(t *queued) { t.Entry.Fields = t.Entry.Fields[1:] },
		"in another place":            func(t *queued) { t.index = 7; t.setJournalIndex(7) },
	} {
		t.Run(name, func(t *testing.T) {
			task, want := verifiedTask(x, 2), verifiedTask(x, 2)
			change(task)
			change(want)
			x.rest(task)
			if task.Task != nil {
				t.Fatal("not at rest")
			}
			if err := x.wake(task); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Entry, task.Entry, cmp.AllowUnexported(plan.Entry{})); diff != "" {
				t.Errorf("entry:\n%s", diff)
			}
			if task.verified != nil {
				if task.verified.want == nil {
					t.Error("nothing is wanted")
				}
				task.verified.want = nil
			}
			if diff := cmp.Diff(want.verified, task.verified, cmp.AllowUnexported(Verified{})); diff != "" {
				t.Errorf("verified:\n%s", diff)
			}
		})
	}
}

func TestWhatStaysAsItIs(t *testing.T) {
	for name, change := range map[string]func(*queued){
		"made of a Secret":              func(t *queued) { t.Entry.Fields[0].Secret = true },
		"withheld":                      func(t *queued) { t.Entry.Fields[0].Withheld = true },
		"with a part for its status":    func(t *queued) { t.verified.status = &Verified{} },
		"verified at another endpoint":  func(t *queued) { t.verified.Key.Subresource = request.StatusSubresource },
		"recorded of another object":    func(t *queued) { t.Entry.Object.UID = "another" },
		"with a value of no object":     func(t *queued) { t.Entry.Before["x"] = 1 },
		"with another value of a field": func(t *queued) { t.Entry.Fields[0].To = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			x := &Executor{Writer: &Writer{}}
			task := verifiedTask(x, 1)
			change(task)
			entry, verified := task.Entry, task.verified
			if x.rest(task); task.Task == nil || task.Entry != entry || task.verified != verified {
				t.Error("at rest")
			}
		})
	}
}

// What a run keeps of an object until all is verified must be small, since it keeps that of all objects.
func TestATaskAtRestIsSmall(t *testing.T) {
	const objects, most = 2000, 200
	x := &Executor{Writer: &Writer{}}
	defer x.Close()          //nolint:errcheck // what it holds is needed no more
	for i := range objects { // with which the others share what they can, and which fill what stays in memory
		x.rest(verifiedTask(x, i))
	}
	kept := make([]*queued, objects)
	before := heap.InUse()
	for i := range kept {
		kept[i] = verifiedTask(x, objects+i)
		x.rest(kept[i])
	}
	if each := (heap.InUse() - before) / objects; each > most {
		t.Errorf("%d bytes for each object, want at most %d", each, most)
	} else {
		t.Logf("%d bytes for each object", each)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(x)
}

// Where the disk takes nothing, tasks rest in memory, and their objects are read again. That is told once.
func TestWithoutADiskTasksRestInMemory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var told strings.Builder
	x := &Executor{Writer: &Writer{}, ErrOut: &told}
	for i := range 2000 {
		x.rest(verifiedTask(x, i))
	}
	for i, q := range x.queue {
		if inMemory := q.place != (file.Place{}); q.Task != nil || !inMemory {
			t.Errorf("task %d is at rest: %t, because there is no disk: %t", i, q.Task == nil, inMemory)
		}
		if i == 1999 && q.listed != (file.Place{}) {
			t.Error("an object is held in memory")
		}
		if err := x.wake(q); err != nil || q.Entry.After == nil || q.verified.patch.Body == nil {
			t.Fatalf("%s: %v, %v", q.key(), q.Entry, err)
		}
	}
	if _, err := x.scratch.Read(x.queue[1999].place); err == nil {
		t.Error("what was read is in memory still")
	}
	if want := "warning: what waits to be written is kept in memory: open "; strings.Count(told.String(), want) != 1 || strings.Count(told.String(), "\n") != 1 {
		t.Errorf("told: %s", told.String())
	}
}
