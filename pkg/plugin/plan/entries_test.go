package plan_test

import (
	"fmt"
	"reflect"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/heap"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// numbered is a change of the n-th object, as an evaluation makes it.
func numbered(t testing.TB, n int) plan.Entry {
	t.Helper()
	state := func(value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%[1]d","namespace":"shop","resourceVersion":"%[1]d","uid":"u%[1]d",
			"managedFields":[{"manager":"m","time":"2026-01-02T15:04:05Z"}]},"data":{"name":"c%[1]d","mode":%[2]q}}`, n, value)
	}
	c := change(object(t, state("lax")), object(t, state("strict")))
	c.Impacts = []engine.Impact{{Code: engine.ImpactManaged, Text: "Argo CD manages it", Fields: []fieldpath.Path{c.Fields[0].Path}}}
	return plan.NewEntry(&c)
}

// Entries come out of the file as they were, and leave little in memory.
func TestEntriesAreInAFile(t *testing.T) {
	const objects, most = 4000, 64
	all := &plan.Entries{}
	defer all.Close() //nolint:errcheck // it is needed no more
	add := func(n int) {
		e := numbered(t, n)
		all.Add(&e)
	}
	for i := range objects { // which fill what stays in memory
		add(i)
	}
	before := heap.InUse()
	for i := range objects {
		add(objects + i)
	}
	if each := (heap.InUse() - before) / objects; each > most {
		t.Errorf("%d bytes for each entry, want at most %d", each, most)
	}
	if n := all.Whole(); n > 0 {
		t.Errorf("%d entries are in memory as they are", n)
	}
	for i := range all.Len() {
		got, err := all.At(i)
		if want := numbered(t, i); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("entry %d is %+v, want %+v, %v", i, got, want, err)
		}
	}
}

// What the file would not give back as it is stays in memory.
func TestEntriesThatStayInMemory(t *testing.T) {
	c := change(object(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`), object(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","labels":{"a":"b"}}}`))
	shown := c
	c.Shown = &shown
	e, all := plan.NewEntry(&c), &plan.Entries{}
	all.Add(&e)
	got, err := all.At(0)
	if err != nil || all.Whole() != 1 || !reflect.DeepEqual(got, e) {
		t.Errorf("%d in memory, %+v, %v", all.Whole(), got, err)
	}
}
