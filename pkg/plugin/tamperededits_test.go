package plugin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// forgedUndos are changes of the journal of a run that has written what forgeries are about: what undo is to
// put back is evil, and not to be shown.
var forgedUndos = map[string][]string{ // pairs of strings
	"made of a Secret":            {`"level":"debug"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"replaced","secret":true`},
	"by a name made of a Secret":  {`"level":"debug"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"replaced","secretFrom":2`},
	"withheld, and was there":     {`"level":"debug"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"added","withheld":true`},
	"in what is withheld":         {`"level":"debug"`, `"level":"evil"`, `"fields":[`, `"fields":[{"path":"data","elements":["f:data"],"kind":"replaced","withheld":true},`},
	"in what is made of a Secret": {`"level":"debug"`, `"level":"evil"`, `"fields":[`, `"fields":[{"path":"data","elements":["f:data"],"kind":"replaced","secret":true},`},
}

// resealed is a string in which the digests of a run are those of what the program reads there.
func resealed(text []byte) []byte {
	type run struct {
		Documents []struct {
			Content        map[string]any
			Origin, Digest string
		}
		Digest string
	}
	var in struct {
		run
		Header struct{ Run run }
	}
	header, _, _ := strings.Cut(string(text), "\n")
	if json.Unmarshal(text, &in) != nil && json.Unmarshal([]byte(header), &in) != nil {
		return text
	}
	for _, r := range []run{in.run, in.Header.Run} {
		var all []engine.Document
		for _, d := range r.Documents {
			if d.Content == nil {
				return text
			}
			all = append(all, engine.NewDocument(&unstructured.Unstructured{Object: d.Content}, d.Origin))
		}
		again, digest, err := plan.DocumentsOf(all, func(engine.Document) bool { return false })
		if err != nil || r.Digest == "" {
			continue
		}
		pairs := []string{r.Digest, digest}
		for i, d := range r.Documents {
			if d.Digest != "" {
				pairs = append(pairs, d.Digest, again[i].Digest)
			}
		}
		text = []byte(strings.NewReplacer(pairs...).Replace(string(text)))
	}
	return text
}

// lay gives the server other objects, and forgets what was written.
func (s *tamperedServer) lay(objects map[string]map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes, s.objects = nil, maps.Clone(objects)
}

// asUndone is what an undo shows, for check. It evaluates nothing: so what it removes of what a journal
// withholds is masked whole, and what the run made of a Secret is masked only where the journal still says
// so. To built-in kinds null and the empty list are as good as absent.
func (x *tampered) asUndone(shown, what string) string {
	x.server.writes = slices.DeleteFunc(x.server.writes, func(line string) bool {
		name, removed, _ := strings.Cut(line, " -")
		field, _, isField := strings.Cut(removed, ":")
		if !isField {
			field = "- '***"
		} else {
			field += ": '***"
		}
		return strings.HasSuffix(line, ": null") || strings.HasSuffix(line, ": []") || name != line && strings.Contains(shown, "-  "+field)
	})
	if what != "nothing" {
		shown = strings.ReplaceAll(shown, tamperedSecret, "***")
	}
	return shown
}

// editedFiles are a plan and the journal of a run that was to make its changes, of which edited copies are
// tried.
type editedFiles struct {
	*tampered
	t             *testing.T
	plan          string
	lines         []string                  // of the journal: header, two entries, beginning, two attempts and results, end
	before, after map[string]map[string]any // the objects on the server
	edited        string                    // the file with an edit
	tried         int
}

func newEditedFiles(t *testing.T) *editedFiles {
	x := &editedFiles{tampered: newTampered(t), t: t}
	t.Setenv("XDG_STATE_HOME", x.dir)
	x.edited = filepath.Join(x.dir, "edited")
	plan, record := filepath.Join(x.dir, "plan.json"), filepath.Join(x.dir, "run.jsonl")
	policy := write(t, x.dir, "policy.yaml", tamperedPolicy)
	x.run("preview", "configmaps", "-n", "shop", "-p", policy, "--save", plan)
	x.before = maps.Clone(x.server.objects)
	if code, _, errOut := x.run("apply-existing", "--plan", plan, "--concurrency=1", "--journal", record); code != process.ExitOK {
		t.Fatal(errOut)
	}
	x.after = maps.Clone(x.server.objects)
	x.plan, x.lines = x.read(plan), strings.SplitAfter(x.read(record), "\n")
	if len(x.lines) != 10 {
		t.Fatalf("%d lines", len(x.lines)) // the last one is empty
	}
	x.run("apply-existing", "configmaps", "-n", "shop", "-p", policy, "--journal", filepath.Join(x.dir, "none"))
	return x
}

func (x *editedFiles) read(file string) string {
	x.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		x.t.Fatal(err)
	}
	return string(text)
}

// try runs a command on an edited file, with a state of the objects on the server.
func (x *editedFiles) try(state map[string]map[string]any, m mutation, args ...string) {
	x.t.Helper()
	x.tried++
	if err := os.WriteFile(x.edited, resealed(m.text), 0o600); err != nil {
		x.t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(x.dir, "new"))
	shown := ""
	if args[0] == "apply-existing" && args[1] == "--plan" {
		_, shown, _ = x.run("plan", "show", x.edited, "-o", "diff", "--color=never")
	}
	x.server.lay(state)
	code, out, errOut := x.run(args...)
	if shown == "" {
		shown = out
	}
	if args[0] == "undo" {
		shown, errOut = x.asUndone(shown, m.what), strings.ReplaceAll(errOut, tamperedSecret, "")
	}
	x.check(strings.Join(args[:2], " ")+": "+m.what, shown, errOut, code)
}

// Whatever is forged in a plan or a journal, no command writes what it has not shown, shows a Secret, or
// breaks. That the law holds for each value is tested where it lives: diff.Partial.ValidateShown and
// plan.Entry.Drift.
func TestForgedPlansAndJournals(t *testing.T) {
	x := newEditedFiles(t)
	apply := []string{"apply-existing", "--plan", x.edited, "--journal", filepath.Join(x.dir, "new"), "--concurrency=1"}
	resume := []string{"apply-existing", "--resume", x.edited, "--yes", "-o", "diff", "--color=never", "--concurrency=1"}
	undo := []string{"undo", x.edited, "--yes", "-o", "diff", "--color=never", "--journal", filepath.Join(x.dir, "new"), "--concurrency=1"}
	begun, whole := strings.Join(x.lines[:5], ""), strings.Join(x.lines[:9], "")
	x.try(x.before, mutation{"nothing", []byte(x.plan)}, apply...)
	x.try(x.before, mutation{"nothing", []byte(begun)}, resume...)
	x.try(x.after, mutation{"nothing", []byte(whole)}, undo...)
	if x.counts["written as shown"] != 3 {
		t.Fatalf("the files themselves: %v", x.counts)
	}
	for _, m := range forged(t, []byte(x.plan)) {
		x.try(x.before, m, apply...)
	}
	for n, line := range x.lines[:5] {
		for what, text := range map[string]string{"missing": "", "doubled": line + line, "cut": line[:len(line)/2] + "\n"} {
			m := mutation{fmt.Sprintf("line %d is %s", n+1, what), []byte(strings.Join(x.lines[:n], "") + text + strings.Join(x.lines[n+1:5], ""))}
			x.try(x.before, m, resume...)
		}
	}
	for _, m := range forged(t, []byte(begun), "two of everything") {
		x.try(x.before, m, resume...)
	}
	for _, m := range forged(t, []byte(whole), slices.Collect(maps.Keys(forgeries))...) {
		x.try(x.after, m, undo...)
	}
	for what, pairs := range forgedUndos {
		x.try(x.after, mutation{what, []byte(strings.NewReplacer(pairs...).Replace(whole))}, undo...)
	}
	t.Logf("%d edits: %v", x.tried, x.counts)
}

// tamperedFleet is a directory with the plans of two clusters, which have the same objects, and with the
// journals of their runs.
type tamperedFleet struct {
	*tampered
	servers map[string]*tamperedServer
	plans   string
	saved   map[string]string // the files of the directory, by name
}

// newTamperedFleet makes the directory, with flags of its run.
func newTamperedFleet(t *testing.T, owner string, flags ...string) *tamperedFleet {
	t.Helper()
	x := &tamperedFleet{tampered: newTampered(t), servers: map[string]*tamperedServer{"a": {uid: "u-a", owner: owner}, "b": {uid: "u-b", owner: owner}}, saved: map[string]string{}}
	x.plans = filepath.Join(x.dir, "plans")
	t.Setenv("XDG_STATE_HOME", x.dir)
	var clusters, contexts []string
	for name, s := range x.servers {
		clusters = append(clusters, fmt.Sprintf("{name: %s, cluster: {server: %q}}", name, s.start(t).URL))
		contexts = append(contexts, fmt.Sprintf("{name: %s, context: {cluster: %s}}", name, name))
	}
	t.Setenv("KUBECONFIG", write(t, x.dir, "kubeconfig", fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: a, clusters: [%s], contexts: [%s]}", strings.Join(clusters, ", "), strings.Join(contexts, ", "))))
	x.must("preview", "configmaps", "-n", "shop", "-p", write(t, x.dir, "policy.yaml", tamperedPolicy), "--contexts=a,b", "--save", x.plans)
	x.must(append([]string{"apply-existing", "--plan", x.plans, "--concurrency=1"}, flags...)...)
	for _, name := range []string{"001-a.plan", "001-a.jsonl", "002-b.plan", "002-b.jsonl"} {
		text, err := os.ReadFile(filepath.Join(x.plans, name))
		if err != nil {
			t.Fatal(err)
		}
		x.saved[name] = string(text)
	}
	return x
}

func (x *tamperedFleet) must(args ...string) {
	x.t.Helper()
	if code, out, errOut := x.run(args...); code > process.ExitChanges {
		x.t.Fatalf("%q: exit code %d\n%s\n%s", args, code, out, errOut)
	}
}

// lay makes the directory anew, with files by their names: the contents of a saved file that is named, or any
// text.
func (x *tamperedFleet) lay(files map[string]string) {
	x.t.Helper()
	if err := errors.Join(os.RemoveAll(x.plans), os.Mkdir(x.plans, 0o700)); err != nil {
		x.t.Fatal(err)
	}
	for name, content := range files {
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			if err := os.Symlink(target, filepath.Join(x.plans, name)); err != nil {
				x.t.Fatal(err)
			}
			continue
		}
		if saved, ok := x.saved[content]; ok {
			content = saved
		}
		write(x.t, x.plans, name, content)
	}
}

// written is on which clusters something was written, and whether it was all of a plan, once.
func (x *tamperedFleet) written() string {
	var out []string
	for _, name := range []string{"a", "b"} {
		switch n := len(x.servers[name].writes); n {
		case 0:
		case 7:
			out = append(out, name)
		default:
			out = append(out, fmt.Sprintf("%s (%d lines)", name, n))
		}
	}
	return strings.Join(out, " ")
}

// begun is a journal that ends before its first write.
func (x *tamperedFleet) begun(name string) string {
	return strings.Join(strings.SplitAfter(x.saved[name], "\n")[:4], "") // header, two entries, beginning
}

// TestTamperedDirectories changes which files are in a directory of plans and journals. Each file is for the
// cluster that it names, and is applied once; one that cannot be read, or that others may have written, keeps
// all from being written.
func TestTamperedDirectories(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	x := newTamperedFleet(t, "")
	both := func(more ...string) map[string]string {
		files := map[string]string{"001-a.plan": "001-a.plan", "002-b.plan": "002-b.plan"}
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	others := write(t, x.dir, "others.plan", x.saved["001-a.plan"])
	if err := os.Chmod(others, 0o666); err != nil { // this is what is tested
		t.Fatal(err)
	}
	ofA := func(s string) string { return strings.ReplaceAll(s, `"context":"b"`, `"context":"a"`) }
	if ofA(x.saved["002-b.plan"]) == x.saved["002-b.plan"] || ofA(x.begun("002-b.jsonl")) == x.begun("002-b.jsonl") {
		t.Fatal("the files do not name their contexts")
	}
	apply, resume, undo := []string{"apply-existing", "--plan"}, []string{"apply-existing", "--resume"}, []string{"undo"}
	for what, c := range map[string]struct {
		args    []string
		files   map[string]string
		code    int
		written string // on clusters
		told    string
	}{
		"as it was":                     {apply, both(), process.ExitOK, "a b", ""},
		"a missing plan":                {apply, map[string]string{"002-b.plan": "002-b.plan"}, process.ExitOK, "b", ""},
		"no plan":                       {apply, map[string]string{"001-a.jsonl": "001-a.jsonl"}, process.ExitNothing, "", "the directory has no plan"},
		"a doubled plan":                {apply, both("003-a.plan", "001-a.plan"), process.ExitIncomplete, "a b", "drifted"},
		"plans with each other's name":  {apply, both("001-a.plan", "002-b.plan", "002-b.plan", "001-a.plan"), process.ExitOK, "a b", ""},
		"another order":                 {apply, map[string]string{"009-a.plan": "001-a.plan", "002-b.plan": "002-b.plan"}, process.ExitOK, "a b", ""},
		"files that are no plans":       {apply, both("notes.txt", "x", "002-b.plan~", "001-a.plan", ".hidden", "x"), process.ExitOK, "a b", ""},
		"an empty plan":                 {apply, both("003-c.plan", ""), process.ExitNothing, "", "nothing was written: "},
		"half a plan":                   {apply, both("003-c.plan", x.saved["001-a.plan"][:100]), process.ExitNothing, "", "nothing was written: "},
		"a journal for a plan":          {apply, both("003-c.plan", "001-a.jsonl"), process.ExitNothing, "", "nothing was written: "},
		"a link to the plan of others":  {apply, both("003-c.plan", "-> "+others), process.ExitNothing, "", "others can write to it"},
		"a link to nothing":             {apply, both("003-c.plan", "-> nothing"), process.ExitNothing, "", "nothing was written: "},
		"a plan with another's context": {apply, both("002-b.plan", ofA(x.saved["002-b.plan"])), process.ExitIncomplete, "a", "it was made on another cluster"},
		"a journal of another run":      {apply, both("001-a.jsonl", "002-b.jsonl"), process.ExitNothing, "", "is the journal of a run that has begun"},
		"resumed: journals that begin":  {resume, both("001-a.jsonl", x.begun("001-a.jsonl"), "002-b.jsonl", x.begun("002-b.jsonl")), process.ExitOK, "a b", ""},
		"resumed: each other's journal": {resume, both("001-a.jsonl", x.begun("002-b.jsonl"), "002-b.jsonl", x.begun("001-a.jsonl")), process.ExitNothing, "", "error: "},
		"resumed: another's context":    {resume, both("001-a.jsonl", ofA(x.begun("002-b.jsonl")), "002-b.jsonl", "002-b.jsonl"), process.ExitIncomplete, "", "it was made on another cluster"},
		"resumed: half a journal":       {resume, both("001-a.jsonl", x.saved["001-a.jsonl"][:100], "002-b.jsonl", "002-b.jsonl"), process.ExitNothing, "", "error: "},
		"resumed: a link to a journal":  {resume, both("001-a.jsonl", "-> "+others), process.ExitNothing, "", "error: "},
		"undone: no journal":            {undo, both(), process.ExitNothing, "", "nothing"},
		"undone: half a journal":        {undo, both("001-a.jsonl", x.saved["001-a.jsonl"][:100], "002-b.jsonl", "002-b.jsonl"), process.ExitNothing, "", "error: "},
		"undone: a run that never was":  {undo, both("001-a.jsonl", "001-a.jsonl", "002-b.jsonl", "002-b.jsonl"), process.ExitNothing, "", "a state from before the run"},
		"undone: a link, not followed":  {undo, map[string]string{"001-a.jsonl": "-> " + others}, process.ExitNothing, "", "nothing"},
		"undone: another's context":     {undo, map[string]string{"001-a.jsonl": ofA(x.saved["002-b.jsonl"])}, process.ExitNothing, "", "error: "},
		"undone: a plan for a journal":  {undo, map[string]string{"001-a.jsonl": "001-a.plan"}, process.ExitNothing, "", "error: "},
	} {
		t.Run(what, func(t *testing.T) {
			x.lay(c.files)
			for _, s := range x.servers {
				s.reset()
			}
			args := append(slices.Clone(c.args), x.plans, "--yes", "--on-error=continue")
			code, out, errOut := x.run(args...)
			if got := x.written(); code != c.code || got != c.written || !strings.Contains(out+errOut, c.told) || strings.Contains(errOut, "panic") {
				t.Errorf("exit code %d, want %d; written on %q, want %q; told %q:\n%s\n%s", code, c.code, got, c.written, c.told, out, errOut)
			}
		})
	}
}
