package plugin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// textsOf are copies of a JSON text in which one text after the other, or one name of a field, begins and ends like a line of its own.
func textsOf(text string) []mutation {
	quoted, err := json.Marshal(strings.ToValidUTF8(hostileLine+hostile.All()+hostileLine, "\ufffd"))
	if err != nil {
		panic(err)
	}
	root := &jsonNode{closes: ']', kids: []*jsonNode{parseJSON(text)}}
	var all []mutation
	for n, p := range root.nodes() {
		if was := p.in.kids[p.at]; was.closes == 0 && strings.HasPrefix(was.text, `"`) {
			p.in.kids[p.at] = &jsonNode{text: string(quoted)}
			all = append(all, mutation{fmt.Sprintf("text %d: %s", n, was.text), []byte(root.kids[0].String())})
			p.in.kids[p.at] = was
		}
		if n > 0 && p.in.closes == '}' {
			was := p.in.keys[p.at]
			p.in.keys[p.at] = string(quoted)
			all = append(all, mutation{fmt.Sprintf("name %d: %s", n, was), []byte(root.kids[0].String())})
			p.in.keys[p.at] = was
		}
	}
	return all
}

// TestHostileFilesAreShown puts hostile texts into each place of a plan and of a journal, and has what commands say of them read as a
// terminal and a CI runner read it.
func TestHostileFilesAreShown(t *testing.T) {
	tier.NotShort(t)
	x := newTampered(t)
	t.Setenv("XDG_STATE_HOME", x.dir)
	runs := filepath.Join(x.dir, "kubectl-mutate")
	planFile, record, edited := filepath.Join(x.dir, "plan.json"), filepath.Join(x.dir, "run.jsonl"), filepath.Join(runs, "20260101T000000Z-c-0a1b2c3d.jsonl")
	x.run("preview", "configmaps", "-n", "shop", "-p", write(t, x.dir, "policy.yaml", tamperedPolicy), "--save", planFile)
	if code, _, errOut := x.run("apply-existing", "--plan", planFile, "--concurrency=1", "--journal", record); code != plugin.ExitOK {
		t.Fatal(errOut)
	}
	saved, err := os.ReadFile(planFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(runs, 0o700); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	counts := 0
	try := func(what string, n int, commands ...[]string) {
		for i, args := range commands {
			if !*everyMutation && (n+i)%len(commands) > 0 {
				continue
			}
			counts++
			_, out, errOut := x.run(args...)
			if slices.ContainsFunc(args, func(arg string) bool { return arg == "json" || arg == "yaml" || arg == "name" }) {
				out = strings.Join(strings.Fields(strings.ReplaceAll(strings.ReplaceAll(out, "##", ""), "::", "")), " ") // formats for programs print commands to a CI runner as they are
			}
			if err := shownAsMeant(args, out, errOut); err != nil || strings.Contains(errOut, "panic") {
				t.Errorf("%s, %s: %v\n%.3000q\n%.3000q", what, args, err, out, errOut)
			}
		}
	}
	for n, m := range textsOf(string(saved)) {
		write(t, x.dir, "edited.json", string(resealed(m.text)))
		file := filepath.Join(x.dir, "edited.json")
		var shows [][]string
		for _, format := range []string{"diff", "summary", "table", "wide", "name", "json", "yaml", "markdown"} {
			shows = append(shows, []string{"plan", "show", file, "-o", format, "--color=never"})
		}
		try(m.what, n, append(shows, []string{"plan", "show", file, "--report=github"}, []string{"apply-existing", "--plan", file, "--dry-run=server"})...)
	}
	for n, line := range lines {
		for i, m := range textsOf(strings.TrimSuffix(line, "\n")) {
			all := slices.Clone(lines)
			all[n] = string(m.text) + "\n"
			write(t, runs, filepath.Base(edited), string(resealed([]byte(strings.Join(all, "")))))
			try(fmt.Sprintf("line %d, %s", n+1, m.what), i, []string{"history", "-A"}, []string{"history", "-A", "-o", "json"}, []string{"history", edited}, []string{"history", "-o", "name", "-A"},
				[]string{"__complete", "undo", ""}, []string{"__complete", "apply-existing", "--resume", ""}, []string{"undo", edited, "--dry-run=server", "-o", "diff", "--color=never"}, []string{"undo", edited, "--dry-run=client", "-o", "summary"},
				[]string{"apply-existing", "--resume", edited, "--dry-run=server"}, []string{"undo", "latest", "--dry-run=client", "-o", "table"})
		}
	}
	t.Logf("%d commands", counts)
}
