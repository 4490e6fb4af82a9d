package engine_test

import (
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Counting fields copies none of them.
func TestCountRecords(t *testing.T) {
	record := engine.FieldChange{Path: fieldpath.MakePathOrDie("metadata", "annotations", engine.AppliedPatches)}
	label := engine.FieldChange{Path: fieldpath.MakePathOrDie("metadata", "labels", "team")}
	for _, fields := range [][]engine.FieldChange{nil, {label}, {record}, {record, label}, {label, record, label}} {
		counted, records := engine.CountRecords(fields)
		some, others := engine.SplitRecords(fields)
		if counted != len(some) || records != len(others) || counted+records != len(fields) {
			t.Errorf("%v: %d and %d, divided %v and %v", fields, counted, records, some, others)
		}
		if n := testing.AllocsPerRun(10, func() { engine.CountRecords(fields) }); n > 0 {
			t.Errorf("%v: %v allocations", fields, n)
		}
	}
}
