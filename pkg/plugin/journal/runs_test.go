package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ran leaves the journal of a run over two objects, the second of which it did
// not come to. Without results the first was written.
func ran(t *testing.T, directory string, h journal.Header, results ...journal.Result) {
	t.Helper()
	if len(results) == 0 {
		results = []journal.Result{{Outcome: "applied", Written: true}}
	}
	documents, digest, err := plan.DocumentsOf(nil, nil)
	check(t, err)
	h.FieldManager = "kubectl-mutate"
	h.Run.Version, h.Run.Created, h.Run.Documents, h.Run.Digest = "dev", h.Started, documents, digest
	w, err := journal.Create(filepath.Join(directory, h.ID+journal.Extension), h, journal.Options{
		Now: func() time.Time { return h.Started },
	})
	check(t, err)
	for _, name := range []string{"first", "second"} {
		object := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: name}
		check(t, w.Plan(plan.Entry{Object: object, Method: "apply"}))
	}
	check(t, w.Begin())
	for _, r := range results {
		check(t, w.Result(r))
	}
	check(t, w.Close())
}

// The journals of a run on several clusters are in a directory of their own.
func TestRunsOnSeveralClusters(t *testing.T) {
	directory := t.TempDir()
	fleet := filepath.Join(directory, journal.FleetName(noon, "0a1b2c3d"))
	for _, dir := range []string{fleet, filepath.Join(directory, "other")} {
		check(t, os.Mkdir(dir, 0o700))
		ran(t, dir, journal.Header{ID: "2", Command: "apply-existing", Started: noon.Add(time.Minute), Run: plan.Run{Cluster: plan.Cluster{Context: "staging"}}})
	}
	ran(t, directory, journal.Header{ID: "1", Command: "apply-existing", Started: noon, Run: plan.Run{Cluster: plan.Cluster{Context: "staging"}}})
	runs, err := journal.Runs(directory, "staging", func(file string, err error) { t.Errorf("%s: %v", file, err) })
	check(t, err)
	var names []string
	for _, r := range runs {
		names = append(names, r.Name())
	}
	if diff := cmp.Diff([]string{filepath.Join(fleet, "2.jsonl"), filepath.Join(directory, "1.jsonl")}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRunsAreSortedLatestFirst(t *testing.T) {
	directory := t.TempDir()
	staging, production := plan.Cluster{Context: "staging"}, plan.Cluster{Context: "production"}
	ran(t, directory, journal.Header{ID: "1", Command: "apply-existing", Started: noon, Run: plan.Run{Cluster: staging}})
	ran(t, directory, journal.Header{ID: "2", Command: "undo", Undoes: "1", Started: noon.Add(time.Minute), Run: plan.Run{Cluster: staging}})
	ran(t, directory, journal.Header{ID: "3", Command: "apply-existing", Started: noon.Add(time.Hour), Run: plan.Run{Cluster: production}})
	check(t, os.WriteFile(filepath.Join(directory, "4"+journal.Extension), []byte("rubbish\nrubbish\n"), 0o600))
	for name, c := range map[string]struct {
		context string
		want    []string
	}{
		"of all contexts":     {"", []string{"3", "2", "1"}},
		"of one":              {"staging", []string{"2", "1"}},
		"of one without runs": {"test", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var broken []error
			runs, err := journal.Runs(directory, c.context, func(_ string, err error) { broken = append(broken, err) })
			check(t, err)
			var got []string
			for _, r := range runs {
				got = append(got, r.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(broken) != 1 || !strings.Contains(broken[0].Error(), "4"+journal.Extension) {
				t.Errorf("broken are %v, want the one file that is no journal", broken)
			}
		})
	}
}

// A run can be undone if anything of any object was written, whatever became of the rest of it.
func TestUndoable(t *testing.T) {
	for name, c := range map[string]struct {
		results []journal.Result
		want    bool
	}{
		"written":               {[]journal.Result{{Outcome: "applied", Written: true}}, true},
		"not its status yet":    {[]journal.Result{{Outcome: "applied", Written: true, More: true}}, true},
		"but its status failed": {[]journal.Result{{Outcome: "applied", Written: true, More: true}, {Outcome: "failed", Failed: true, Subresource: "status"}}, true},
		"failed":                {[]journal.Result{{Outcome: "failed", Failed: true}}, false},
		"gone before the write": {[]journal.Result{{Outcome: "deleted"}}, false},
		"as wanted already":     {[]journal.Result{{Outcome: "unchanged"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			ran(t, directory, journal.Header{ID: "1", Command: "apply-existing", Started: noon}, c.results...)
			runs, err := journal.Runs(directory, "", func(_ string, err error) { t.Error(err) })
			check(t, err)
			if len(runs) != 1 || runs[0].Undoable() != c.want {
				t.Errorf("got %+v, want one run that is undoable: %t", runs, c.want)
			}
		})
	}
}

// An object that was found to be as wanted is none that was written.
func TestRunsCountWhatIsUnchanged(t *testing.T) {
	j := &journal.Journal{Entries: []journal.Entry{
		{Results: []journal.Result{{Written: true}}},
		{Results: []journal.Result{{}}},
		{Results: []journal.Result{{Failed: true}}},
		{},
	}}
	want := journal.Run{Planned: 4, Applied: 1, Unchanged: 1, Failed: 1, Left: 1, Written: 1}
	if diff := cmp.Diff(want, j.Run()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
