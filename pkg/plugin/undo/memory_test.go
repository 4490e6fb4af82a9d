package undo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/heap"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// numbered is the state of a ConfigMap that has a name and a value of its own.
func numbered(name, mode string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"mode": mode, "of": name},
		"metadata": map[string]any{"namespace": "shop", "name": name, "uid": "0c5a9d4e-5f3c-4b0e-9f7e-" + name, "resourceVersion": "100"},
	}}
}

// numberedServer has ConfigMaps as a run has left them.
type numberedServer struct{ apply.Server }

func (numberedServer) Get(_ context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	return numbered(key.Name, "strict"), nil
}

// What an undo keeps of an object until all is verified must be small, since it keeps that of all objects.
func TestUndoKeepsLittle(t *testing.T) {
	const objects, most = 8000, 500
	path := filepath.Join(t.TempDir(), "j.jsonl")
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	j, err := journal.Create(path, journal.Header{ID: "1", FieldManager: "m", Started: now, Run: plan.NewRun(plan.Cluster{}, "dev", now)}, journal.Options{})
	check(t, err)
	for i := range objects {
		name := fmt.Sprintf("%012d", i)
		before, after := numbered(name, "lax"), numbered(name, "strict")
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: name, UID: after.GetUID()}
		check(t, j.Plan(plan.Entry{Object: key, Partial: diff.Between(before, after, diff.Type{})}))
	}
	check(t, j.Begin())
	for i := range objects {
		name := fmt.Sprintf("%012d", i)
		before, after := numbered(name, "lax"), numbered(name, "strict")
		check(t, j.Result(journal.Result{
			Entry: i, Outcome: "applied", Written: true, UID: after.GetUID(), ResourceVersion: "100", Partial: diff.Between(before, after, diff.Type{}),
		}))
	}
	check(t, j.Close())

	before := heap.InUse()
	w, err := journal.ReadWritten(path)
	check(t, err)
	defer w.Close() //nolint:errcheck // it was only read
	stop, shown := errors.New("stop"), 0
	r := Reversal{
		Header: w.Header, Objects: w, Executor: &apply.Executor{Options: apply.Options{Concurrency: 1}, Writer: &apply.Writer{Server: numberedServer{}}, Masker: &redact.Masker{}},
		Found: func(c *engine.Change) error {
			if c.Changed() {
				shown++
			}
			return nil
		},
		Previewed: func(evaluation.Summary) error {
			if each := (heap.InUse() - before) / objects; each > most {
				t.Errorf("%d bytes for each object, want at most %d", each, most)
			} else {
				t.Logf("%d bytes for each object", each)
			}
			return stop
		},
	}
	if _, err := r.Run(t.Context()); !errors.Is(err, stop) || shown != objects {
		t.Errorf("%d objects of %d would be put back, %v", shown, objects, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
