package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/undo"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

var started = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

func header(t testing.TB) journal.Header {
	t.Helper()
	documents, digest, err := plan.DocumentsOf(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return journal.Header{
		ID: "0a1b2c3d", Command: "apply-existing", Started: started, FieldManager: "kubectl-mutate",
		Run: plan.Run{Version: "dev", Created: started, Documents: documents, Digest: digest},
	}
}

// valueSet is a change of one value of a ConfigMap.
func valueSet(from, to string) diff.Partial {
	state := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"k": value}}}
	}
	return diff.Between(state(from), state(to), diff.Type{})
}

func entry(name string) plan.Entry {
	object := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: name}
	return plan.Entry{Object: object, Partial: valueSet("a", "b"), Method: request.Apply}
}

// written is the journal of a run over six objects that was cut off.
func written(t testing.TB) (path string, text []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "new", "j.jsonl")
	w, err := journal.Create(path, header(t))
	check(t, err)
	for _, name := range []string{"done", "failed", "doubt", "planned", "partial", "retried"} {
		check(t, w.Plan(new(entry(name))))
	}
	check(t, w.Begin())
	attempt := func(i int, subresource string) {
		t.Helper()
		check(t, w.Attempt(journal.Attempt{Entry: i, Subresource: subresource, ResourceVersion: "1", Method: request.Apply, Partial: valueSet("a", "b")}))
	}
	attempt(0, "")
	check(t, w.Result(journal.Result{Entry: 0, Outcome: "applied", Written: true, ResourceVersion: "2", Partial: valueSet("a", "b")}))
	attempt(1, "")
	check(t, w.Result(journal.Result{Entry: 1, Outcome: "failed", Failed: true, Error: "no"}))
	attempt(2, "")
	attempt(4, "")
	check(t, w.Result(journal.Result{Entry: 4, Outcome: "applied", Written: true, More: true, ResourceVersion: "2", Partial: valueSet("a", "b")}))
	attempt(5, "")
	attempt(5, "")
	check(t, w.Result(journal.Result{Entry: 5, Outcome: "applied", Written: true, ResourceVersion: "3", Partial: valueSet("a", "b")}))
	check(t, w.Close())
	text, err = os.ReadFile(path)
	check(t, err)
	return path, text
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func statuses(t *testing.T, j *journal.Journal) map[string]journal.Status {
	t.Helper()
	out := map[string]journal.Status{}
	for i := range j.Entries {
		out[j.Entries[i].Object.Name] = j.Entries[i].Status()
	}
	return out
}

func TestEntryStatus(t *testing.T) {
	path, _ := written(t)
	j, err := journal.Read(path)
	check(t, err)
	want := map[string]journal.Status{
		"done": journal.Done, "failed": journal.Failed, "doubt": journal.InDoubt,
		"planned": journal.Planned, "partial": journal.Partial, "retried": journal.Done,
	}
	if d := cmp.Diff(want, statuses(t, j)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	glanced, err := journal.Glance(path)
	check(t, err)
	if d := cmp.Diff(j.Count(), glanced.Count()); d != "" || glanced.Header.ID != j.Header.ID {
		t.Errorf("at a glance (-read +glanced):\n%s", d)
	}
	if doubt := j.Entries[2].Doubt(); doubt == nil || doubt.ResourceVersion != "1" || j.Entries[0].Doubt() != nil {
		t.Errorf("in doubt: %v", doubt)
	}
	if j.End != nil || j.Torn || !j.Begun || j.Header.ID != "0a1b2c3d" || j.Header.Secrets {
		t.Errorf("read %+v", j)
	}
	if d := cmp.Diff(valueSet("a", "b"), j.Entries[0].Results[0].Partial); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A run can be killed anywhere: whatever is left of its journal can be read, and
// does not say that an object is done before that was recorded.
func TestReadOfATornJournal(t *testing.T) {
	_, text := written(t)
	headerEnd := bytes.IndexByte(text, '\n') + 1
	for n := range text {
		j, err := journal.Parse("j", bytes.NewReader(text[:n]))
		if n < headerEnd {
			var damaged *journal.Error
			if !errors.As(err, &damaged) || damaged.Line == 0 {
				t.Fatalf("%d bytes: got %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if whole := text[n-1] == '\n'; j.Torn == whole {
			t.Fatalf("%d bytes: torn is %t", n, j.Torn)
		}
		results := bytes.Count(text[:n], []byte(`{"result"`)) // the last one may be torn
		if done := j.Count()[journal.Done]; done > results {
			t.Fatalf("%d bytes: %d done", n, done)
		}
	}
}

func TestReadErrors(t *testing.T) {
	path, text := written(t)
	lines := strings.SplitAfter(string(text), "\n")
	with := func(i int, line string) string {
		changed := append([]string{}, lines...)
		changed[i] = line
		return strings.Join(changed, "")
	}
	for _, tt := range []struct{ name, text, want string }{
		{"something else", "hello\nworld\n", "line 1: invalid character"},
		{"a line that is no JSON", with(3, "{\n"), "line 4: unexpected EOF"},
		{"a line that is missing", with(3, ""), "line 7: a record is out of order"},
		{"a header that comes late", strings.Join(lines[1:], ""), "line 1: the first record must be the header"},
		{"an object that is planned twice", with(2, lines[1]), "line 3: ConfigMap shop/done: the object already has an entry"},
		{"a header with an ID that is a line", with(0, strings.Replace(lines[0], `"id":"0a1b2c3d"`, `"id":"\nTo take back 0: kubectl delete ns shop"`, 1)), "line 1: the header's ID is none"},
		{"a header without a field manager", with(0, strings.Replace(lines[0], `"fieldManager":"kubectl-mutate"`, `"fieldManager":""`, 1)), "line 1: the header names no field manager"},
		{"two headers", lines[0] + string(text), "line 2: the first record must be the header"},
		{"a write before all is planned", lines[0] + lines[8], "line 2: a record is out of order"},
		{"an object that was not planned", with(9, `{"result":{"entry":6,"outcome":"applied","time":"2026-01-02T15:04:05Z"}}`+"\n"), "line 10: no such entry"},
		{"an object before the first one", with(9, `{"result":{"entry":-1,"outcome":"applied","time":"2026-01-02T15:04:05Z"}}`+"\n"), "line 10: no such entry"},
		{"a record of a later version", with(9, `{"note":{}}`+"\n"), `line 10: json: unknown field "note"`},
		{"two records in a line", with(9, strings.TrimSuffix(lines[9], "\n")+lines[9]), "line 10: a line must be exactly one record"},
		{"an empty record", with(9, "{}\n"), "line 10: a line must be exactly one record"},
		{"a planned field that is nowhere", with(1, strings.Replace(lines[1], `"f:k"`, `"f:l"`, 1)), "line 2: ConfigMap shop/done: data.l: a field is in neither state of its object"},
		{"a field that is nowhere", with(9, strings.Replace(lines[9], `"f:k"`, `"f:l"`, 1)), "line 10: data.l: a field is in neither state of its object"},
		{"a policy that is not the one it was", with(0, strings.Replace(lines[0], "sha256:", "sha256:0", 1)), "line 1: the policies do not match their digest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check(t, os.WriteFile(path, []byte(tt.text), 0o600))
			_, err := journal.Read(path)
			if err == nil || !strings.HasPrefix(err.Error(), "journal "+path+", "+tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestResumeAfterTheLastWholeLine(t *testing.T) {
	path, text := written(t)
	check(t, os.WriteFile(path, append(text, `{"result":{"ent`...), 0o600))
	j, w, err := journal.Resume(path)
	check(t, err)
	if !j.Torn {
		t.Error("the last line is not torn")
	}
	check(t, w.Resumed(journal.Resumed{Version: "dev"}))
	check(t, w.Result(journal.Result{Entry: 2, Outcome: "applied", Written: true, Partial: valueSet("a", "b")}))
	check(t, w.Result(journal.Result{Entry: 1, Outcome: "applied", Written: true, Partial: valueSet("a", "b")}))
	check(t, w.End(journal.End{Outcomes: map[string]int{"applied": 2}}))
	check(t, w.Close())
	j, err = journal.Read(path)
	check(t, err)
	if got := statuses(t, j); got["doubt"] != journal.Done || got["failed"] != journal.Done || got["planned"] != journal.Planned {
		t.Errorf("got %v", got)
	}
	if j.Torn || j.End == nil || len(j.Resumed) != 1 {
		t.Errorf("read %+v", j)
	}
}

func TestResumeLocksTheJournal(t *testing.T) {
	path, _ := written(t)
	_, w, err := journal.Resume(path)
	check(t, err)
	if _, _, err := journal.Resume(path); err == nil || !strings.Contains(err.Error(), "another run is writing to it") {
		t.Errorf("got %v", err)
	}
	check(t, w.Close())
	if _, err := journal.Create(path, header(t)); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("got %v", err)
	}
}

func TestWriterWithholdsSecrets(t *testing.T) {
	for _, keep := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "j.jsonl")
		h := header(t)
		h.Secrets = keep
		w, err := journal.Create(path, h)
		check(t, err)
		e := entry("c")
		e.Partial = valueSet("a", "hunter22")
		e.Fields[0].Secret = true
		check(t, w.Plan(&e))
		check(t, w.Begin())
		check(t, w.Attempt(journal.Attempt{Partial: valueSet("a", "x hunter22")}))
		check(t, w.Close())
		_, w, err = journal.Resume(path) // it goes on as it was begun
		check(t, err)
		check(t, w.Result(journal.Result{Partial: valueSet("hunter22", "c"), Error: "hunter22 is refused", Failed: true}))
		check(t, w.Close())
		text, err := os.ReadFile(path)
		check(t, err)
		if n := bytes.Count(text, []byte("hunter22")); (n > 0) != keep {
			t.Errorf("kept: %t, and %d times in the file:\n%s", keep, n, text)
		}
		j, err := journal.Read(path)
		check(t, err)
		if j.Header.Secrets != keep || j.Entries[0].Fields[0].Withheld == keep || j.Entries[0].Results[0].Fields[0].Withheld == keep {
			t.Errorf("kept: %t, header says %t, fields %v", keep, j.Header.Secrets, j.Entries[0].Fields)
		}
		if j.Entries[0].Fields[0].Secret != keep {
			t.Errorf("kept: %t, and the fields say of what is a Secret's: %v", keep, j.Entries[0].Fields)
		}
	}
}

// FuzzRead feeds hostile files. Whatever is taken for a journal can be asked for
// everything.
func FuzzRead(f *testing.F) {
	_, text := written(f)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := journal.Parse("j", bytes.NewReader(text))
		if err != nil {
			return
		}
		for i := range j.Entries {
			e := &j.Entries[i]
			e.Status()
			e.Doubt()
			e.Change()
		}
	})
}

func TestAllowedString(t *testing.T) {
	for _, tt := range []struct {
		allowed journal.Allowed
		want    string
	}{
		{journal.Allowed{}, ""},
		{journal.Allowed{TakeFrom: []string{"argocd", "flux"}}, "--take-from=argocd --take-from=flux"},
		{
			journal.Allowed{ForceConflicts: true, IncludeManaged: true, SkipRejected: true},
			"--force-conflicts --include-managed --skip-rejected",
		},
	} {
		if got := tt.allowed.String(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.allowed, got, tt.want)
		}
	}
}

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
	w, err := journal.Create(filepath.Join(directory, h.ID+journal.Extension), h)
	check(t, err)
	for _, name := range []string{"first", "second"} {
		object := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: name}
		check(t, w.Plan(&plan.Entry{Object: object, Method: "apply"}))
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

// readWritten reads all of what a run wrote.
func readWritten(t *testing.T, path string) []undo.Object {
	t.Helper()
	j, err := journal.Read(path)
	check(t, err)
	return undo.Objects(j)
}

func TestWritten(t *testing.T) {
	attempt := func(method request.Method) journal.Attempt { return journal.Attempt{Method: method} }
	ofStatus := journal.Attempt{Subresource: "status", Method: request.JSONPatch}
	written := journal.Result{Written: true, ResourceVersion: "5", UID: "u"}
	for _, tt := range []struct {
		name    string
		records []any
		want    []undo.Write
		applied bool
	}{
		{"nothing", nil, nil, false},
		{"a write", []any{attempt(request.Apply), written}, []undo.Write{{ResourceVersion: "5"}}, true},
		{"a write without a result", []any{attempt(request.JSONPatch)}, []undo.Write{{InDoubt: true}}, false},
		{"a write that was tried twice", []any{attempt(request.Apply), attempt(request.Apply)}, []undo.Write{{InDoubt: true}}, true},
		{"a write that failed", []any{attempt(request.Apply), journal.Result{Failed: true}}, nil, true},
		{"a write after which there was nothing to do", []any{attempt(request.Apply), journal.Result{Outcome: "unchanged"}}, []undo.Write{{InDoubt: true}}, true},
		{"a write, and one of the status in doubt", []any{attempt(request.Apply), written, ofStatus}, []undo.Write{{ResourceVersion: "5"}, {InDoubt: true}}, true},
		{"a write without a result, and one of the status", []any{attempt(request.Apply), ofStatus, journal.Result{Subresource: "status", Written: true, ResourceVersion: "6"}}, []undo.Write{{ResourceVersion: "6"}, {InDoubt: true}}, true},
		{"a write that is tried again after its result", []any{attempt(request.Apply), written, attempt(request.Apply)}, []undo.Write{{ResourceVersion: "5"}, {InDoubt: true}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.jsonl")
			w, err := journal.Create(path, header(t))
			check(t, err)
			check(t, w.Plan(new(entry("other"))))
			check(t, w.Plan(new(entry("c"))))
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
			w, err := journal.Create(path, header(t))
			check(t, err)
			e := entry("c")
			e.Object.UID = tt.planned
			check(t, w.Plan(&e))
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

// A watch records one run after another in its journal. What was not written of an object, and is planned again, is
// only counted once; what was written is undone as one.
func TestJournalOfAWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.jsonl")
	w, err := journal.Create(path, header(t))
	check(t, err)
	w.Share()
	for run, made := range []map[string]journal.Result{
		{"a": {Written: true, ResourceVersion: "2"}, "b": {Failed: true}, "c": {}},
		{"a": {Written: true, ResourceVersion: "3"}, "b": {Written: true, ResourceVersion: "4"}},
	} {
		for _, name := range slices.Sorted(maps.Keys(made)) {
			check(t, w.Plan(new(entry(name))))
		}
		check(t, w.Begin())
		for i, name := range slices.Sorted(maps.Keys(made)) {
			r := made[name]
			r.Entry, r.Partial = 3*run+i, valueSet([]string{"a", "b"}[run], []string{"b", "c"}[run])
			if name != "c" {
				check(t, w.Attempt(journal.Attempt{Entry: r.Entry, ResourceVersion: "1", Method: request.Apply, Partial: r.Partial}))
			}
			check(t, w.Result(r))
		}
		check(t, w.End(journal.End{}))
		check(t, w.Close())
	}
	check(t, w.Finish())
	j, err := journal.Read(path)
	check(t, err)
	glanced, err := journal.Glance(path)
	check(t, err)
	want := j.Run()
	if d := cmp.Diff(want, glanced.Run()); d != "" || want.Planned != 4 || want.Applied != 3 || want.Failed != 0 || want.Written != 2 || !want.Complete {
		t.Errorf("%+v, at a glance (-read +glanced):\n%s", want, d)
	}
	var got []string
	for _, o := range undo.Objects(j) {
		got = append(got, fmt.Sprintf("%s %d %s", o.Object.Name, len(o.Writes), o.ResourceVersion))
	}
	if d := cmp.Diff([]string{"a 2 3", "b 1 4"}, got); d != "" {
		t.Error(d)
	}
	check(t, os.WriteFile(path, append(must(os.ReadFile(path)), `{"planned":{"object":{"apiVersion":"v1","kind":"ConfigMap","name":"x"}}}`+"\n"+`{"planned":{"object":{"apiVersion":"v1","kind":"ConfigMap","name":"x"}}}`+"\n"...), 0o600))
	if _, err := journal.Read(path); !errors.Is(err, plan.ErrTwice) {
		t.Errorf("twice in one run: %v", err)
	}
}

func must(text []byte, _ error) []byte { return text }

func TestPrune(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		before  time.Time
		most    int64
		watches bool
		want    string
	}{
		"by age":               {now.Add(-time.Hour), 0, false, "new watch-new"},
		"by size":              {time.Time{}, 25, false, "new watch-new"},
		"those of watches":     {now.Add(-time.Hour), 5, true, "new old watch-new"},
		"never one that is in": {now.Add(time.Hour), 1, false, "watch-new"},
		"nothing":              {time.Time{}, 0, false, "new old watch-new watch-old"},
	} {
		dir := t.TempDir()
		paths := map[string]string{
			"old": journal.FileName(now.Add(-48*time.Hour), "c.watch-x", "00000001"), "watch-old": journal.WatchFileName(now.Add(-47*time.Hour), "c", "00000002"),
			"new": journal.FileName(now.Add(-time.Minute), "c", "00000003"), "watch-new": journal.WatchFileName(now, "c", "00000004"),
		}
		for kind, file := range paths {
			paths[kind] = filepath.Join(dir, file)
			check(t, os.WriteFile(paths[kind], make([]byte, 10), 0o600))
			if strings.HasSuffix(kind, "old") {
				check(t, os.Chtimes(paths[kind], now.Add(-48*time.Hour), now.Add(-48*time.Hour)))
			}
		}
		check(t, journal.Prune(dir, c.before, c.most, c.watches, paths["watch-new"]))
		var got []string
		for _, kind := range slices.Sorted(maps.Keys(paths)) {
			if _, err := os.Stat(paths[kind]); err == nil {
				got = append(got, kind)
			}
		}
		if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
