package journal_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// readWritten reads all of what a run wrote.
func readWritten(t *testing.T, path string) []journal.WrittenObject {
	t.Helper()
	j, err := journal.Read(path)
	check(t, err)
	return j.Written()
}

func TestWritten(t *testing.T) {
	attempt := func(method request.Method) journal.Attempt { return journal.Attempt{Method: method} }
	ofStatus := journal.Attempt{Subresource: "status", Method: request.JSONPatch}
	written := journal.Result{Written: true, ResourceVersion: "5", UID: "u"}
	for _, tt := range []struct {
		name    string
		records []any
		want    []journal.Write
		applied bool
	}{
		{"nothing", nil, nil, false},
		{"a write", []any{attempt(request.Apply), written}, []journal.Write{{ResourceVersion: "5"}}, true},
		{"a write without a result", []any{attempt(request.JSONPatch)}, []journal.Write{{InDoubt: true}}, false},
		{"a write that was tried twice", []any{attempt(request.Apply), attempt(request.Apply)}, []journal.Write{{InDoubt: true}}, true},
		{"a write that failed", []any{attempt(request.Apply), journal.Result{Failed: true}}, nil, true},
		{"a write after which there was nothing to do", []any{attempt(request.Apply), journal.Result{Outcome: "unchanged"}}, []journal.Write{{InDoubt: true}}, true},
		{"a write, and one of the status in doubt", []any{attempt(request.Apply), written, ofStatus}, []journal.Write{{ResourceVersion: "5"}, {InDoubt: true}}, true},
		{"a write without a result, and one of the status", []any{attempt(request.Apply), ofStatus, journal.Result{Subresource: "status", Written: true, ResourceVersion: "6"}}, []journal.Write{{ResourceVersion: "6"}, {InDoubt: true}}, true},
		{"a write that is tried again after its result", []any{attempt(request.Apply), written, attempt(request.Apply)}, []journal.Write{{ResourceVersion: "5"}, {InDoubt: true}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.jsonl")
			w, err := journal.Create(path, header(t), options())
			check(t, err)
			check(t, w.Plan(entry("other")))
			check(t, w.Plan(entry("c")))
			check(t, w.Begin())
			for _, r := range tt.records {
				switch r := r.(type) {
				case journal.Attempt:
					r.Entry, r.Partial = 1, valueSet("a", "b")
					check(t, w.Attempt(r))
				case journal.Result:
					r.Entry, r.Partial = 1, valueSet("a", "b")
					check(t, w.Result(r))
				}
			}
			check(t, w.Close())
			got := readWritten(t, path)
			if len(tt.want) == 0 {
				if len(got) > 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			for i := range tt.want {
				tt.want[i].Partial = valueSet("a", "b")
			}
			if len(got) != 1 || got[0].Applied != tt.applied || got[0].Object.Name != "c" {
				t.Fatalf("got %+v", got)
			}
			if d := cmp.Diff(tt.want, got[0].Writes); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// An object is the one that was planned or, where that has no UID, the one of the first result.
func TestUIDOfAWrittenObject(t *testing.T) {
	for _, tt := range []struct {
		name    string
		planned types.UID
		results []types.UID
		want    types.UID
	}{
		{"as planned", "u", []types.UID{"u"}, "u"},
		{"written again", "u", []types.UID{"u", "u"}, "u"},
		{"then another one", "u", []types.UID{"u", "v"}, "u"},
		{"first another one", "u", []types.UID{"v", "u"}, "u"},
		{"another one than planned", "u", []types.UID{"v"}, "u"},
		{"of which only the plan says it", "u", []types.UID{""}, "u"},
		{"of which only a result says it", "", []types.UID{"u", "v"}, "u"},
		{"of which only the second result says it", "", []types.UID{"", "u"}, "u"},
		{"of which nothing says it", "", []types.UID{""}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.jsonl")
			w, err := journal.Create(path, header(t), options())
			check(t, err)
			e := entry("c")
			e.Object.UID = tt.planned
			check(t, w.Plan(e))
			check(t, w.Begin())
			for _, uid := range tt.results {
				check(t, w.Result(journal.Result{Written: true, UID: uid}))
			}
			check(t, w.Close())
			if got := readWritten(t, path); len(got) != 1 || got[0].Object.UID != tt.want {
				t.Errorf("got %+v, want the UID %q", got, tt.want)
			}
		})
	}
}
