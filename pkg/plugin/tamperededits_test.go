package plugin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// forgedUndos are changes of the journal of a run that has written what forgeries are about: what undo is to put back is evil, and not to be shown.
var forgedUndos = map[string][]string{ // pairs of texts
	"made of a Secret":            {`"level":"debug"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"replaced","secret":true`},
	"by a name made of a Secret":  {`"level":"debug"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"replaced","secretFrom":2`},
	"withheld, and was there":     {`"level":"debug"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"added","withheld":true`},
	"in what is withheld":         {`"level":"debug"`, `"level":"evil"`, `"fields":[`, `"fields":[{"path":"data","elements":["f:data"],"kind":"replaced","withheld":true},`},
	"in what is made of a Secret": {`"level":"debug"`, `"level":"evil"`, `"fields":[`, `"fields":[{"path":"data","elements":["f:data"],"kind":"replaced","secret":true},`},
}

// resealed is a text in which the digests of a run are those of what the program reads there.
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

// asUndone is what an undo shows, for check. It evaluates nothing: so what it removes of what a journal withholds is masked whole, and what
// the run made of a Secret is masked only where the journal still says so. To built-in kinds null and the empty list are as good as absent.
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

// editedFiles are a plan and the journal of a run that was to make its changes, of which edited copies are tried.
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
	if code, _, errOut := x.run("apply-existing", "--plan", plan, "--concurrency=1", "--journal", record); code != plugin.ExitOK {
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

// Whatever is forged in a plan or a journal, no command writes what it has not shown, shows a Secret, or breaks. That the law
// holds for each value is tested where it lives: diff.Partial.ValidateShown and plan.Entry.Drift.
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
