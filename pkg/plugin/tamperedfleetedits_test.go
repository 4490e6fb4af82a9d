package plugin_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// checkEach demands of each cluster that what was stored was shown, and that the field that somebody else has applied was taken only if that
// was allowed; what was shown of b is what a plan of its own shows, where it has one.
func (x *tamperedFleet) checkEach(what, shown, ofB, text string, allowed bool) {
	x.t.Helper()
	for name, s := range x.servers {
		lines := shownLines(shown)
		if name == "b" && ofB != "" {
			lines = shownLines(ofB)
		}
		for _, w := range s.writes {
			if !slices.Contains(lines, w) {
				x.t.Errorf("%s: %q was written on %s and not shown:\n%s\n%s", what, w, name, ofB, text)
			}
			if !allowed && strings.HasPrefix(w, "a ") && strings.Contains(w, "level:") {
				x.t.Errorf("%s: %q of another manager was written on %s:\n%s", what, w, name, text)
			}
		}
	}
	if strings.Contains(text, tamperedSecret) || strings.Contains(text, "hunter22") {
		x.t.Errorf("%s: a Secret is shown:\n%s", what, text)
	}
	if strings.Contains(text, "panic") || strings.ContainsAny(text, "\x1b\u202e\r") || strings.Contains(text, "\n::error") {
		x.t.Errorf("%s: %q", what, text)
	}
}

// Whatever is edited in the text of a plan or a journal of a directory, on no cluster is written what was not shown, or what another manager
// owns without leave.
func TestEditedFleets(t *testing.T) {
	tier.NotShort(t)
	x := newTamperedFleet(t, "boss", "--take-from=boss")
	after := map[string]map[string]map[string]any{}
	for name, s := range x.servers {
		if len(s.writes) != 7 {
			t.Fatalf("%s: %q", name, s.writes)
		}
		s.own()
		after[name] = maps.Clone(s.objects)
	}
	flags := []string{"-o", "diff", "--color=never", "--concurrency=1", "--on-error=continue"}
	counts := 0
	try := func(m mutation, file string, begun bool, args ...string) {
		if counts++; !*everyMutation && counts%tier.Pick(2, 5) > 0 && m.what != "nothing" {
			return
		}
		files := map[string]string{"001-a.plan": "001-a.plan", "002-b.plan": "002-b.plan"}
		if strings.HasSuffix(file, ".jsonl") {
			files["001-a.jsonl"] = "001-a.jsonl"
		}
		if begun {
			files["001-a.jsonl"] = x.begun("001-a.jsonl")
		}
		files[file] = string(resealed(m.text))
		x.lay(files)
		ofB := ""
		if args[1] == "--plan" {
			_, ofB, _ = x.run("plan", "show", filepath.Join(x.plans, file), "-o", "diff", "--color=never")
		}
		for name, s := range x.servers {
			if s.reset(); args[0] == "undo" {
				s.lay(after[name])
			}
		}
		code, out, errOut := x.run(append(append(args, x.plans), flags...)...)
		shown := out
		if args[0] == "undo" {
			for _, s := range x.servers {
				x.server = s
				shown = x.asUndone(shown, m.what)
			}
			errOut, out = strings.ReplaceAll(errOut, tamperedSecret, ""), shown
		}
		all := strings.Join(args, " ")
		allowed := strings.Contains(all, "=boss") || strings.Contains(errOut, "With the options of the original run: ") && (strings.Contains(errOut, "--take-from=boss") || strings.Contains(errOut, "--force-conflicts"))
		x.checkEach(args[0]+" "+args[1]+": "+m.what, shown, ofB, out+errOut, allowed)
		x.counts[fmt.Sprintf("%s %s: %d, %s", args[0], args[1], code, x.written())]++
	}
	plan := x.saved["002-b.plan"]
	for _, m := range append(editsOf(plan), mutation{"nothing", []byte(plan)}) {
		try(m, "002-b.plan", false, "apply-existing", "--take-from=boss", "--plan")
		try(m, "002-b.plan", false, "apply-existing", "--skip-rejected", "--plan")
	}
	lines := strings.SplitAfter(x.saved["002-b.jsonl"], "\n")
	try(mutation{"nothing", []byte(x.saved["002-b.jsonl"])}, "002-b.jsonl", false, "undo", "--yes", "--take-from=boss")
	for n, line := range lines[:len(lines)-1] {
		for _, m := range editsOf(line) {
			m.what = fmt.Sprintf("line %d: %s", n+1, m.what)
			with := func(last int) mutation {
				all := slices.Clone(lines[:last])
				all[n] = string(m.text) + "\n"
				return mutation{m.what, []byte(strings.Join(all, ""))}
			}
			if n < 4 {
				try(with(4), "002-b.jsonl", true, "apply-existing", "--yes", "--resume")
			}
			try(with(len(lines)-1), "002-b.jsonl", false, "undo", "--yes", "--take-from=boss")
			try(with(len(lines)-1), "002-b.jsonl", false, "undo", "--yes", "--skip-rejected")
		}
	}
	t.Logf("%d edits: %v", counts, x.counts)
}
