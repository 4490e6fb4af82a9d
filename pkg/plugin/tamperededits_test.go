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

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// editsOf are edits of every value of a JSON text and of its name.
func editsOf(text string) []mutation {
	root := &jsonNode{closes: ']', kids: []*jsonNode{parseJSON(text)}}
	places := root.nodes()
	var all []mutation
	for n, p := range places {
		name, was := fmt.Sprintf("value %d", n), p.in.kids[p.at]
		if p.in.closes == '}' {
			name += ", " + p.in.keys[p.at]
		}
		var of []mutation
		try := func(what string, kids ...*jsonNode) {
			in := *p.in
			p.in.kids = slices.Replace(slices.Clone(in.kids), p.at, p.at+1, kids...)
			if in.closes == '}' {
				keys := slices.Repeat([]string{in.keys[p.at]}, len(kids))
				p.in.keys = slices.Replace(slices.Clone(in.keys), p.at, p.at+1, keys...)
			}
			of = append(of, mutation{name + " " + what, []byte(root.kids[0].String())})
			*p.in = in
		}
		scalar := func(text string) *jsonNode { return &jsonNode{text: text} }
		if n > 0 {
			try("is missing")
			try("is doubled, the second is evil", was, scalar(`"evil"`))
			try("is doubled, the first is evil", scalar(`"evil"`), was)
		}
		try("is null", scalar("null"))
		try("is evil", scalar(`"evil"`))
		try("is a number", scalar("7"))
		try("is a huge number", scalar("1e999"))
		try("is a long number", scalar("9223372036854775808"))
		try("is a text", scalar(`"7"`))
		try("is an empty text", scalar(`""`))
		try("has escapes", scalar(`"\u001b[31m\u202e\r\n::error::x"`))
		try("is true", scalar("true"))
		try("is an empty list", &jsonNode{closes: ']'})
		try("is an empty object", &jsonNode{closes: '}'})
		try("is in a list", &jsonNode{closes: ']', kids: []*jsonNode{was}})
		for i := range places {
			other := places[(n+i+1)%len(places)]
			value := other.in.kids[other.at]
			if other.in.closes == p.in.closes && (p.in.closes == ']' || other.in.keys[other.at] == p.in.keys[p.at]) && value.String() != was.String() {
				try("is that of another", scalar(value.String())) // which may be around this one
				break
			}
		}
		if reversed := *was; len(was.kids) > 1 {
			reversed.kids, reversed.keys = slices.Clone(was.kids), slices.Clone(was.keys)
			slices.Reverse(reversed.kids)
			slices.Reverse(reversed.keys)
			try("is reversed", &reversed)
		}
		if was.closes == '}' {
			for _, key := range []string{"evil", "secret", "withheld", "secretFrom", "installed", "subresource"} {
				more := *was
				more.keys, more.kids = append(slices.Clone(was.keys), fmt.Sprintf("%q", key)), append(slices.Clone(was.kids), scalar("1"))
				if key != "secretFrom" {
					more.kids[len(was.kids)] = scalar("true")
				}
				try("has "+key, &more)
			}
			for i, key := range was.keys {
				more := *was
				more.keys, more.kids = append(slices.Clone(was.keys), strings.ToUpper(key)), append(slices.Clone(was.kids), scalar(`"evil"`))
				if len(was.kids[i].kids) > 0 {
					more.kids[len(was.kids)] = &jsonNode{closes: was.kids[i].closes}
				}
				try("has "+strings.ToUpper(key), &more)
			}
		}
		if !*everyMutation {
			of = of[n%len(of):][:1]
		}
		all = append(all, of...)
	}
	return sampled(all)
}

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

// Whatever is edited in the text of a plan or a journal, no command writes what it has not shown, shows a Secret, or breaks.
func TestEditedPlansAndJournals(t *testing.T) {
	tier.NotShort(t)
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
	for _, m := range slices.Concat(editsOf(x.plan), forged(t, []byte(x.plan))) {
		x.try(x.before, m, apply...)
	}
	for n, line := range x.lines[:5] {
		for what, text := range map[string]string{"missing": "", "doubled": line + line, "cut": line[:len(line)/2] + "\n"} {
			m := mutation{fmt.Sprintf("line %d is %s", n+1, what), []byte(strings.Join(x.lines[:n], "") + text + strings.Join(x.lines[n+1:5], ""))}
			x.try(x.before, m, resume...)
		}
	}
	for n, line := range x.lines[:9] {
		for _, m := range editsOf(line) {
			m.what = fmt.Sprintf("line %d: %s", n+1, m.what)
			with := func(first, last int) mutation {
				all := slices.Clone(x.lines[first:last])
				all[n-first] = string(m.text) + "\n"
				return mutation{m.what, []byte(strings.Join(all, ""))}
			}
			if n < 5 {
				x.try(x.before, with(0, 5), resume...)
			}
			x.try(x.after, with(0, 9), undo...)
			if *everyMutation || n%2 == 0 {
				x.try(x.after, with(0, 9), "history", x.edited)
			}
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
