package journal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
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

func options() journal.Options {
	return journal.Options{Now: func() time.Time { return started }}
}

// written is the journal of a run over six objects that was cut off.
func written(t testing.TB) (path string, text []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "new", "j.jsonl")
	w, err := journal.Create(path, header(t), options())
	check(t, err)
	for _, name := range []string{"done", "failed", "doubt", "planned", "partial", "retried"} {
		check(t, w.Plan(entry(name)))
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
	j, w, err := journal.Resume(path, options())
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
	_, w, err := journal.Resume(path, options())
	check(t, err)
	if _, _, err := journal.Resume(path, options()); err == nil || !strings.Contains(err.Error(), "another run is writing to it") {
		t.Errorf("got %v", err)
	}
	check(t, w.Close())
	if _, err := journal.Create(path, header(t), options()); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("got %v", err)
	}
}

func TestWriterWithholdsSecrets(t *testing.T) {
	for _, keep := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "j.jsonl")
		o := options()
		o.Secrets = keep
		w, err := journal.Create(path, header(t), o)
		check(t, err)
		e := entry("c")
		e.Partial = valueSet("a", "hunter22")
		e.Fields[0].Secret = true
		check(t, w.Plan(e))
		check(t, w.Begin())
		check(t, w.Attempt(journal.Attempt{Partial: valueSet("a", "x hunter22")}))
		check(t, w.Close())
		o.Secrets = false // it goes on as it was begun
		_, w, err = journal.Resume(path, o)
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
