package plugin_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// tamperedFleet is a directory with the plans of two clusters, which have the same objects, and with the journals of their runs.
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
	if code, out, errOut := x.run(args...); code > plugin.ExitChanges {
		x.t.Fatalf("%q: exit code %d\n%s\n%s", args, code, out, errOut)
	}
}

// lay makes the directory anew, with files by their names: the contents of a saved file that is named, or any text.
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

// TestTamperedDirectories changes which files are in a directory of plans and journals. Each file is for the cluster that it names, and
// is applied once; one that cannot be read, or that others may have written, keeps all from being written.
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
	if err := os.Chmod(others, 0o666); err != nil { //nolint:gosec // this is what is tested
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
		"as it was":                     {apply, both(), plugin.ExitOK, "a b", ""},
		"a missing plan":                {apply, map[string]string{"002-b.plan": "002-b.plan"}, plugin.ExitOK, "b", ""},
		"no plan":                       {apply, map[string]string{"001-a.jsonl": "001-a.jsonl"}, plugin.ExitNothing, "", "the directory has no plan"},
		"a doubled plan":                {apply, both("003-a.plan", "001-a.plan"), plugin.ExitIncomplete, "a b", "drifted"},
		"plans with each other's name":  {apply, both("001-a.plan", "002-b.plan", "002-b.plan", "001-a.plan"), plugin.ExitOK, "a b", ""},
		"another order":                 {apply, map[string]string{"009-a.plan": "001-a.plan", "002-b.plan": "002-b.plan"}, plugin.ExitOK, "a b", ""},
		"files that are no plans":       {apply, both("notes.txt", "x", "002-b.plan~", "001-a.plan", ".hidden", "x"), plugin.ExitOK, "a b", ""},
		"an empty plan":                 {apply, both("003-c.plan", ""), plugin.ExitNothing, "", "nothing was written: "},
		"half a plan":                   {apply, both("003-c.plan", x.saved["001-a.plan"][:100]), plugin.ExitNothing, "", "nothing was written: "},
		"a journal for a plan":          {apply, both("003-c.plan", "001-a.jsonl"), plugin.ExitNothing, "", "nothing was written: "},
		"a link to the plan of others":  {apply, both("003-c.plan", "-> "+others), plugin.ExitNothing, "", "others can write to it"},
		"a link to nothing":             {apply, both("003-c.plan", "-> nothing"), plugin.ExitNothing, "", "nothing was written: "},
		"a plan with another's context": {apply, both("002-b.plan", ofA(x.saved["002-b.plan"])), plugin.ExitIncomplete, "a", "it was made on another cluster"},
		"a journal of another run":      {apply, both("001-a.jsonl", "002-b.jsonl"), plugin.ExitNothing, "", "is the journal of a run that has begun"},
		"resumed: journals that begin":  {resume, both("001-a.jsonl", x.begun("001-a.jsonl"), "002-b.jsonl", x.begun("002-b.jsonl")), plugin.ExitOK, "a b", ""},
		"resumed: each other's journal": {resume, both("001-a.jsonl", x.begun("002-b.jsonl"), "002-b.jsonl", x.begun("001-a.jsonl")), plugin.ExitNothing, "", "error: "},
		"resumed: another's context":    {resume, both("001-a.jsonl", ofA(x.begun("002-b.jsonl")), "002-b.jsonl", "002-b.jsonl"), plugin.ExitIncomplete, "", "it was made on another cluster"},
		"resumed: half a journal":       {resume, both("001-a.jsonl", x.saved["001-a.jsonl"][:100], "002-b.jsonl", "002-b.jsonl"), plugin.ExitNothing, "", "error: "},
		"resumed: a link to a journal":  {resume, both("001-a.jsonl", "-> "+others), plugin.ExitNothing, "", "error: "},
		"undone: no journal":            {undo, both(), plugin.ExitNothing, "", "nothing"},
		"undone: half a journal":        {undo, both("001-a.jsonl", x.saved["001-a.jsonl"][:100], "002-b.jsonl", "002-b.jsonl"), plugin.ExitNothing, "", "error: "},
		"undone: a run that never was":  {undo, both("001-a.jsonl", "001-a.jsonl", "002-b.jsonl", "002-b.jsonl"), plugin.ExitNothing, "", "a state from before the run"},
		"undone: a link, not followed":  {undo, map[string]string{"001-a.jsonl": "-> " + others}, plugin.ExitNothing, "", "nothing"},
		"undone: another's context":     {undo, map[string]string{"001-a.jsonl": ofA(x.saved["002-b.jsonl"])}, plugin.ExitNothing, "", "error: "},
		"undone: a plan for a journal":  {undo, map[string]string{"001-a.jsonl": "001-a.plan"}, plugin.ExitNothing, "", "error: "},
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
