package history_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/history"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ran leaves the journal of a run over two objects, the second of which it did
// not come to.
func ran(t *testing.T, directory string, h journal.Header) {
	t.Helper()
	documents, digest, err := plan.DocumentsOf(nil, nil)
	check(t, err)
	h.FieldManager = "kubectl-mutate"
	h.Run.Version, h.Run.Created, h.Run.Documents, h.Run.Digest = "dev", h.Started, documents, digest
	w, err := journal.Create(filepath.Join(directory, h.ID+journal.Extension), h, journal.Options{
		Masker: &redact.Masker{}, Now: func() time.Time { return h.Started },
	})
	check(t, err)
	for _, name := range []string{"first", "second"} {
		object := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: name}
		check(t, w.Plan(plan.Entry{Object: object, Method: "apply"}))
	}
	check(t, w.Begin())
	check(t, w.Result(journal.Result{Entry: 0, Outcome: "applied"}))
	check(t, w.Close())
}

func TestReadGivesTheLatestRunFirst(t *testing.T) {
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
			runs, err := history.Read(directory, c.context, func(err error) { broken = append(broken, err) })
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

func TestReadCountsWhatBecameOfTheObjects(t *testing.T) {
	directory := t.TempDir()
	ran(t, directory, journal.Header{ID: "1", Command: "apply-existing", Started: noon})
	ran(t, directory, journal.Header{ID: "2", Command: "undo", Undoes: "1", Started: noon.Add(time.Minute)})
	runs, err := history.Read(directory, "", func(err error) { t.Error(err) })
	check(t, err)
	want := []history.Run{
		{ID: "2", Command: "undo", Undoes: "1", Started: noon.Add(time.Minute), Planned: 2, Applied: 1, Left: 1, Journal: filepath.Join(directory, "2"+journal.Extension)},
		{ID: "1", Command: "apply-existing", Started: noon, Planned: 2, Applied: 1, Left: 1, Undone: 1, Journal: filepath.Join(directory, "1"+journal.Extension)},
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTableEndsWithWhatCanBeDoneNext(t *testing.T) {
	whole := history.Run{ID: "whole", Journal: "whole.jsonl", Planned: 2, Applied: 2, Complete: true}
	cutOff := history.Run{ID: "cut", Journal: "cut off.jsonl", Planned: 2, Applied: 1, Left: 1}
	undone := history.Run{ID: "undone", Journal: "undone.jsonl", Planned: 2, Applied: 2, Undone: 2}
	undo := history.Run{ID: "undo", Journal: "undo.jsonl", Undoes: "undone", Planned: 2, Applied: 1, Left: 1}
	hostile := history.Run{ID: "a\n\x1b[2Jb", Journal: "x.jsonl", Applied: 1}
	for name, c := range map[string]struct {
		runs []history.Run
		want []string
	}{
		"a whole run can be taken back":                {[]history.Run{whole}, []string{"To take back whole: mutate undo whole.jsonl"}},
		"the latest, not those before":                 {[]history.Run{whole, cutOff}, []string{"To continue with cut: mutate apply --resume 'cut off.jsonl'", "To take back whole: mutate undo whole.jsonl"}},
		"one that was taken back has nothing left":     {[]history.Run{undone}, nil},
		"taking back is neither gone on with nor back": {[]history.Run{undo, undone}, nil},
		"what a file says stays in its line":           {[]history.Run{hostile}, []string{`To take back a \x1b[2Jb: mutate undo x.jsonl`}},
	} {
		t.Run(name, func(t *testing.T) {
			text := printed(t, history.Table, c.runs)
			var got []string
			for _, line := range strings.Split(text, "\n") {
				if strings.HasPrefix(line, "To ") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, text)
			}
			if strings.Contains(text, "\x1b") {
				t.Errorf("a control character reaches the terminal: %q", text)
			}
		})
	}
}

func TestFormats(t *testing.T) {
	runs := []history.Run{{ID: "1", Command: "apply-existing", Started: noon, Journal: "b.jsonl", Applied: 1}, {ID: "2", Command: "undo", Started: noon, Journal: "a.jsonl"}}
	if got := printed(t, history.Name, runs); got != "b.jsonl\na.jsonl\n" {
		t.Errorf("name: %q", got)
	}
	if got := printed(t, history.Table, nil); got != "No runs in state/kubectl-mutate.\n" {
		t.Errorf("an empty table: %q", got)
	}
	var list struct {
		Kind  string        `json:"kind"`
		Items []history.Run `json:"items"`
	}
	check(t, json.Unmarshal([]byte(printed(t, formats.JSON, runs)), &list))
	if diff := cmp.Diff(runs, list.Items); diff != "" || list.Kind != "RunList" {
		t.Errorf("%s, -want +got:\n%s", list.Kind, diff)
	}
}

func printed(t *testing.T, format string, runs []history.Run) string {
	t.Helper()
	var b strings.Builder
	p := history.Printer{Out: &b, Format: format, Where: "state/kubectl-mutate", Resume: "mutate apply", Undo: "mutate undo"}
	check(t, p.Print(runs))
	return b.String()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
