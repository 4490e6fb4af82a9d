package undo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
)

func TestObjects(t *testing.T) {
	attempt := func(method request.Method) journal.Attempt { return journal.Attempt{Method: method} }
	ofStatus := journal.Attempt{Subresource: "status", Method: request.JSONPatch}
	written := journal.Result{Written: true, ResourceVersion: "5", UID: "u"}
	for _, tt := range []struct {
		name     string
		attempts []journal.Attempt
		results  []journal.Result
		want     []undo.Write
		applied  bool
	}{
		{"nothing", nil, nil, nil, false},
		{"a write", []journal.Attempt{attempt(request.Apply)}, []journal.Result{written}, []undo.Write{{ResourceVersion: "5"}}, true},
		{"a write without a result", []journal.Attempt{attempt(request.JSONPatch)}, nil, []undo.Write{{InDoubt: true}}, false},
		{"a write that was tried twice", []journal.Attempt{attempt(request.Apply), attempt(request.Apply)}, nil, []undo.Write{{InDoubt: true}}, true},
		{"a write that failed", []journal.Attempt{attempt(request.Apply)}, []journal.Result{{Failed: true}}, nil, true},
		{
			"a write after which there was nothing to do",
			[]journal.Attempt{attempt(request.Apply)},
			[]journal.Result{{Outcome: "unchanged"}},
			[]undo.Write{{InDoubt: true}},
			true,
		},
		{
			"a write, and one of the status in doubt",
			[]journal.Attempt{attempt(request.Apply), ofStatus},
			[]journal.Result{written},
			[]undo.Write{{ResourceVersion: "5"}, {InDoubt: true}},
			true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := journal.Entry{Entry: plan.Entry{Object: engine.ObjectKey{Name: "c"}}, Attempts: tt.attempts, Results: tt.results}
			got := undo.Objects(&journal.Journal{Entries: []journal.Entry{e}})
			if len(tt.want) == 0 {
				if len(got) > 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Applied != tt.applied {
				t.Fatalf("got %+v", got)
			}
			if d := cmp.Diff(tt.want, got[0].Writes); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
