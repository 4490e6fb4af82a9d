package plugin_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

const (
	tamperedPolicy = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [
		{name: level, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {data: {level: info}}}},
		{name: copy, match: {any: [{resources: {kinds: [ConfigMap], names: [a]}}]},
			context: [{name: s, apiCall: {urlPath: /api/v1/namespaces/shop/secrets/s, jmesPath: data.p}}],
			mutate: {patchStrategicMerge: {data: {copied: "of {{ s }}"}}}},
		{name: list, match: {any: [{resources: {kinds: [ConfigMap], names: [b]}}]},
			mutate: {patchesJson6902: '[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/two"}, {"op": "remove", "path": "/data/old"}]'}}]}}`
	tamperedSecret = "aHVudGVyMjItaHVudGVyMjI="
)

// tamperedServer holds two ConfigMaps and a Secret, and notes what is stored.
type tamperedServer struct {
	mu      sync.Mutex
	uid     string                    // of the cluster
	owner   string                    // who has applied data.level of ConfigMap a; "" where no fields have owners
	objects map[string]map[string]any // of ConfigMaps, by name
	writes  []string                  // lines that a diff of what was written has, with the names of the objects
}

func (s *tamperedServer) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes, s.objects = nil, map[string]map[string]any{}
	for name, text := range map[string]string{
		"a": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, uid: u-a, resourceVersion: "7"}, data: {level: debug}}`,
		"b": `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop, uid: u-b, resourceVersion: "8", finalizers: [example.com/one]}, data: {level: debug, old: "1"}}`,
		"c": `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u-c, resourceVersion: "9"}, data: {level: info, other: "1"}}`,
	} {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			panic(err)
		}
		s.objects[name] = object
	}
	s.own()
}

// own has the owner apply data.level of ConfigMap a as it is.
func (s *tamperedServer) own() {
	if s.owner != "" {
		s.objects["a"]["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
			"manager": s.owner, "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:data": map[string]any{"f:level": map[string]any{}}},
		}}
	}
}

func (s *tamperedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := path.Base(r.URL.Path)
	switch {
	case r.Method == http.MethodPost && name == "selfsubjectaccessreviews":
		fmt.Fprint(w, `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": {"allowed": true}}`)
	case r.Method == http.MethodGet && name == "configmaps":
		var items []any
		for _, name := range slices.Sorted(maps.Keys(s.objects)) {
			items = append(items, s.objects[name])
		}
		answer(w, map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": map[string]any{"resourceVersion": "9"}, "items": items})
	case r.Method == http.MethodGet && name == "kube-system":
		fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": %q}}`, s.uid)
	case r.Method == http.MethodGet && name == "shop":
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u-shop"}}`)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/secrets/s"):
		fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "data": {"p": %q}}`, tamperedSecret)
	case s.objects[name] != nil && strings.HasSuffix(r.URL.Path, "/configmaps/"+name):
		s.object(w, r, name)
	default:
		refuse(w, http.StatusNotFound, "NotFound", "", "")
	}
}

func (s *tamperedServer) object(w http.ResponseWriter, r *http.Request, name string) {
	live := s.objects[name]
	if r.Method != http.MethodPatch {
		answer(w, live)
		return
	}
	after, err := patchedBy(r, live)
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, "Invalid", err.Error(), "")
		return
	}
	version := func(object map[string]any) any { return object["metadata"].(map[string]any)["resourceVersion"] }
	if version(after) != version(live) {
		refuse(w, http.StatusConflict, "Conflict", "the object has been modified", "")
		return
	}
	if from, to := live["data"].(map[string]any), after["data"]; s.owner != "" && fmt.Sprint(from["level"]) != fmt.Sprint(valueOf(to, "level")) {
		delete(after["metadata"].(map[string]any), "managedFields") // who owns a field gives it up when another writer changes it
	}
	if r.URL.Query().Get("dryRun") == "" {
		after["metadata"].(map[string]any)["resourceVersion"] = live["metadata"].(map[string]any)["resourceVersion"].(string) + "0"
		s.writes = append(s.writes, changedLines(name, live, after)...)
		s.objects[name] = after
	}
	answer(w, after)
}

func valueOf(object any, key string) any {
	m, _ := object.(map[string]any)
	return m[key]
}

func answer(w io.Writer, object any) { _ = json.NewEncoder(w).Encode(object) }

// derived is a value that was made of the Secret.
var derived = regexp.MustCompile(`: .*` + tamperedSecret + `.*`)

// changedLines are those of a diff of two states, with the name of the object before each.
func changedLines(name string, before, after map[string]any) []string {
	lines := func(object map[string]any) []string {
		content := map[string]any{"data": object["data"]}
		if finalizers := object["metadata"].(map[string]any)["finalizers"]; finalizers != nil {
			content["finalizers"] = finalizers
		}
		text, err := yaml.Marshal(content)
		if err != nil {
			panic(err)
		}
		hidden := strings.ReplaceAll(derived.ReplaceAllString(string(text), ": '***'"), "\u202e", `\u202e`)
		return strings.Split(strings.TrimSpace(hidden), "\n")
	}
	var out []string
	from, to := lines(before), lines(after)
	for _, side := range []struct {
		sign       string
		all, other []string
	}{{"-", from, to}, {"+", to, from}} {
		for _, line := range side.all {
			if text := strings.TrimSpace(line); !slices.Contains(side.other, line) && !strings.HasSuffix(text, ":") {
				out = append(out, name+" "+side.sign+text)
			}
		}
	}
	return out
}

// shownLines are those of diffs, as changedLines has them.
func shownLines(out string) []string {
	var lines []string
	name := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "--- ConfigMap shop/"):
			name = strings.Fields(line)[2][len("shop/"):]
		case strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-"):
			lines = append(lines, name+" "+line[:1]+strings.TrimSpace(line[1:]))
		}
	}
	return lines
}

// tampered has what the mutations of a file came to.
type tampered struct {
	t      *testing.T
	server *tamperedServer
	dir    string
	counts map[string]int
}

func newTampered(t *testing.T) *tampered {
	t.Helper()
	s := &tamperedServer{uid: "u"}
	useServer(t, s.start(t))
	return &tampered{t: t, server: s, dir: t.TempDir(), counts: map[string]int{}}
}

// start makes it an API server.
func (s *tamperedServer) start(t *testing.T) *httptest.Server {
	t.Helper()
	s.reset()
	return serve(t, discovery(
		"v1 configmaps ConfigMap get,list,patch", "v1 secrets Secret get,list", "v1 namespaces Namespace get,list cluster",
		"authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview create cluster",
	), s.ServeHTTP)
}

func (x *tampered) run(args ...string) (code int, out, errOut string) {
	return runCommand(x.t, args...)
}

// check demands that what was stored was shown, and returns what was.
func (x *tampered) check(what, shown, errOut string, code int) {
	x.t.Helper()
	writes := x.server.writes
	lines := shownLines(shown)
	for _, w := range writes {
		if !slices.Contains(lines, w) {
			x.t.Errorf("%s: %q was written and not shown:\n%s\n%s", what, w, shown, errOut)
		}
	}
	secret, err := base64.StdEncoding.DecodeString(tamperedSecret)
	if all := shown + errOut; err != nil || strings.Contains(all, tamperedSecret) || strings.Contains(all, string(secret)) {
		x.t.Errorf("%s: a Secret is shown:\n%s", what, all)
	}
	switch {
	case strings.Contains(errOut, "panic") || strings.Contains(errOut, "runtime error"):
		x.t.Errorf("%s: %s", what, errOut)
	case len(writes) > 0:
		x.counts["written as shown"]++
	case code == process.ExitNothing && strings.Contains(errOut, "error: "):
		x.counts["refused"]++
	default:
		x.counts["nothing written"]++
	}
}

// A mutation is one change of a JSON document.
type mutation struct {
	what string
	text []byte
}

var everyMutation = flag.Bool("every-mutation", false, "Let tests try each of their variants, and not a part of them.")

// forgeries are changes of several values at once of what holds a run with a change of
// ConfigMap a: data.level from debug to info, and data.copied from a Secret.
var forgeries = map[string][]string{ // pairs of strings
	"another value, withheld":           {`"level":"info"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"replaced","withheld":true`},
	"another value of the policy":       {`"patchStrategicMerge":{"data":{"level":"info"}}`, `"patchStrategicMerge":{"data":{"level":"evil"}}`},
	"the same, withheld":                {`"patchStrategicMerge":{"data":{"level":"info"}}`, `"patchStrategicMerge":{"data":{"level":"evil"}}`, `"kind":"replaced"`, `"kind":"replaced","withheld":true`},
	"the same, all masked":              {`"patchStrategicMerge":{"data":{"level":"info"}}`, `"patchStrategicMerge":{"data":{"level":"evil"}}`, `"kind":"replaced"`, `"kind":"replaced","withheld":true`, `"level":"info"`, `"level":"***"`, `"level":"debug"`, `"level":"***"`},
	"the same, made of a Secret":        {`"patchStrategicMerge":{"data":{"level":"info"}}`, `"patchStrategicMerge":{"data":{"level":"evil"}}`, `"level":"info"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"replaced","secret":true`},
	"the same, by a name made of one":   {`"patchStrategicMerge":{"data":{"level":"info"}}`, `"patchStrategicMerge":{"data":{"level":"evil"}}`, `"level":"info"`, `"level":"evil"`, `"kind":"replaced"`, `"kind":"replaced","secretFrom":2`},
	"the same, in what is withheld":     {`"patchStrategicMerge":{"data":{"level":"info"}}`, `"patchStrategicMerge":{"data":{"level":"evil"}}`, `"level":"info"`, `"level":"evil"`, `"fields":[`, `"fields":[{"path":"data","elements":["f:data"],"kind":"replaced","withheld":true},`},
	"a derived value that looks plain":  {`"copied":"***"`, `"copied":"nothing"`},
	"another derivation":                {`of {{ s }}`, `evil {{ s }}`},
	"an addition that was there":        {`"before":{"data":{"level":"debug"}}`, `"before":{"data":{"level":"debug","copied":"of ***"}}`},
	"an added value in both states":     {`{"data":{"level":"info"}}`, `{"data":{"level":"info","more":"evil"}}`, `"before":{"data":{"level":"debug"}}`, `"before":{"data":{"level":"debug","more":"evil"}}`},
	"another object":                    {`"name":"a"`, `"name":"c"`},
	"another object and its UID":        {`"name":"a"`, `"name":"c"`, `"uid":"u-a"`, `"uid":"u-c"`},
	"a UID that is not known":           {`,"uid":"u-a"`, ``},
	"a dangerous subresource":           {`"kind":"ConfigMap","namespace":"shop","name":"a"`, `"kind":"ConfigMap","subresource":"proxy","namespace":"shop","name":"a"`},
	"a removal of something else":       {`/data/old`, `/data/level`},
	"an element that was there already": {`"finalizers":["example.com/one"]}`, `"finalizers":["example.com/one","example.com/two"]}`},
	"another list before":               {`"metadata":{"finalizers":["example.com/one"]}},"after"`, `"metadata":{"finalizers":["example.com/two"]}},"after"`},
	"no documents":                      {`"documents":[`, `"documents":[],"was":[`},
	"two of everything":                 {`"entries":[`, `"entries":[],"Entries":[`},
}

// forged makes the forgeries of a string, and fails for one that changes nothing.
func forged(t *testing.T, text []byte, optional ...string) []mutation {
	t.Helper()
	var out []mutation
	for _, what := range slices.Sorted(maps.Keys(forgeries)) {
		other := strings.NewReplacer(forgeries[what]...).Replace(string(text))
		if other == string(text) && !slices.Contains(optional, what) {
			t.Errorf("%s: nothing is forged", what)
		}
		out = append(out, mutation{what, []byte(other)})
	}
	return out
}

// A plan says what its entries say, whatever its summary does.
func TestPlanShowCountsTheEntries(t *testing.T) {
	x := newTampered(t)
	file := filepath.Join(x.dir, "plan.json")
	x.run("preview", "configmaps", "-n", "shop", "-p", write(t, x.dir, "policy.yaml", tamperedPolicy), "--save", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := x.run("plan", "show", file, "-o", "summary")
	for _, numbers := range []string{`"objects":3,"changed":0,"fields":0,"incomplete":0,"warnings":0`, `"objects":-1,"changed":-2,"fields":7,"incomplete":7,"warnings":7`} {
		other := strings.Replace(string(text), `"objects":3,"changed":2,"fields":5,"incomplete":0,"warnings":1`, numbers, 1)
		if other == string(text) {
			t.Fatalf("no such summary:\n%s", text)
		}
		write(t, x.dir, "plan.json", other)
		code, got, _ := x.run("plan", "show", file, "-o", "summary")
		if strings.Contains(numbers, "-1") {
			got = strings.ReplaceAll(strings.ReplaceAll(got, "2 objects evaluated", "3 objects evaluated"), ", 0 would not", ", 1 would not")
		}
		if code != process.ExitChanges || got != want {
			t.Errorf("exit code %d:\n%s\nwant:\n%s", code, got, want)
		}
	}
}

// Nothing is written by a file that others may have written, and none is written where
// a link leads.
func TestFilesOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	x := newTampered(t)
	planFile, record, link := filepath.Join(x.dir, "plan.json"), filepath.Join(x.dir, "run.jsonl"), filepath.Join(x.dir, "link")
	saving := []string{"preview", "configmaps", "-n", "shop", "-p", write(t, x.dir, "policy.yaml", tamperedPolicy), "--save"}
	x.run(append(saving, planFile)...)
	if code, _, errOut := x.run("apply-existing", "--plan", planFile, "--journal", record); code != process.ExitOK {
		t.Fatal(errOut)
	}
	x.server.reset()
	for _, mode := range []fs.FileMode{0o606, 0o660, 0o666} {
		if err := errors.Join(os.Chmod(planFile, mode), os.Chmod(record, mode)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"apply-existing", "--plan", planFile},
			{"apply-existing", "--resume", record, "--yes"},
			{"apply-existing", "--resume", record, "--dry-run=server"},
			{"undo", record, "--yes"},
		} {
			code, _, errOut := x.run(args...)
			want := fmt.Sprintf(": others can write to it (mode %04o), so that", mode)
			if code != process.ExitNothing || !strings.Contains(errOut, want) || len(x.server.writes) > 0 {
				t.Errorf("%v: exit code %d, %s, writes %q", args, code, errOut, x.server.writes)
			}
		}
		if code, _, errOut := x.run("plan", "show", planFile); code != process.ExitChanges {
			t.Errorf("plan show: exit code %d, %s", code, errOut)
		}
	}
	x.checkDirectory(append(saving, filepath.Join(x.dir, "plans"), "--contexts=*"))
	target := write(t, x.dir, "target", "precious")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := x.run(append(saving, link)...)
	if text, err := os.ReadFile(target); code != process.ExitNothing || err != nil || string(text) != "precious" || !strings.Contains(errOut, "it is a link, which is not followed") {
		t.Errorf("exit code %d, %s, %q, %v", code, errOut, text, err)
	}
}

// checkDirectory has others write to a directory of plans, which is what decides which of them are applied.
func (x *tampered) checkDirectory(saving []string) {
	x.t.Helper()
	dir := filepath.Join(x.dir, "plans")
	if code, _, errOut := x.run(saving...); code != process.ExitChanges {
		x.t.Fatal(errOut)
	}
	x.server.reset()
	for _, mode := range []fs.FileMode{0o702, 0o770, fs.ModeSticky | 0o777} {
		if err := os.Chmod(dir, mode); err != nil {
			x.t.Fatal(err)
		}
		for _, args := range [][]string{{"apply-existing", "--plan", dir}, {"apply-existing", "--resume", dir, "--yes"}, {"undo", dir, "--yes"}} {
			code, _, errOut := x.run(args...)
			if code != process.ExitNothing || !strings.Contains(errOut, ": others can write to it (mode ") || len(x.server.writes) > 0 {
				x.t.Errorf("%v: exit code %d, %s, writes %q", args, code, errOut, x.server.writes)
			}
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		x.t.Fatal(err)
	}
	if code, _, errOut := x.run("apply-existing", "--plan", dir); code != process.ExitOK || len(x.server.writes) == 0 {
		x.t.Errorf("one's own: exit code %d, %s", code, errOut)
	}
}

// A run that is resumed shows what is left, and asks as the run did that began it.
func TestResumeAsks(t *testing.T) {
	x := newTampered(t)
	file := filepath.Join(x.dir, "run.jsonl")
	policy := write(t, x.dir, "policy.yaml", tamperedPolicy)
	if code, _, errOut := x.run("apply-existing", "configmaps", "-n", "shop", "-p", policy, "--yes", "--concurrency", "1", "--journal", file, "--field-manager", "me", "--force-conflicts"); code != process.ExitOK {
		t.Fatal(errOut)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begun := strings.Join(strings.SplitAfter(string(text), "\n")[:4], "") // header, two entries, beginning
	for _, c := range []struct {
		args   []string
		code   int
		want   string
		writes int
	}{
		{nil, process.ExitNothing, "there is no terminal to ask on; use --yes", 0},
		{[]string{"--yes", "--max-changes", "1"}, process.ExitNothing, "2 objects are more than --max-changes 1", 0},
		{[]string{"--yes"}, process.ExitOK, "With the options of the original run: --force-conflicts --field-manager=me", 7},
	} {
		write(t, x.dir, "run.jsonl", begun)
		x.server.reset()
		code, shown, errOut := x.run(append([]string{"apply-existing", "--resume", file, "-o", "diff", "--color=never"}, c.args...)...)
		if code != c.code || !strings.Contains(errOut, c.want) || len(x.server.writes) != c.writes {
			t.Errorf("%v: exit code %d, %d writes\n%s", c.args, code, len(x.server.writes), errOut)
		}
		if lines := shownLines(shown); !slices.Contains(lines, "a +level: info") || !slices.Contains(lines, "b -old: \"1\"") {
			t.Errorf("%v: shown %q", c.args, lines)
		}
	}
}

// TestForgedReasonsAreEvaluatedAgain forges what a plan and a journal say besides the fields of a change:
// who changes them, and what follows. Before it writes, apply-existing shows what it evaluates.
func TestForgedReasonsAreEvaluatedAgain(t *testing.T) {
	x := newTampered(t)
	file, record := filepath.Join(x.dir, "plan.json"), filepath.Join(x.dir, "journal")
	policy := write(t, x.dir, "policy.yaml", tamperedPolicy)
	x.run("preview", "configmaps", "-n", "shop", "-p", policy, "--save", file)
	apply := func(from string, args ...string) string {
		x.server.reset()
		code, out, errOut := x.run(append([]string{"apply-existing", "--yes", "--concurrency=1", "-o", "diff", "--color=never"}, args...)...)
		if code != process.ExitOK || len(x.server.writes) != 7 {
			t.Errorf("%s: exit code %d, %q\n%s", from, code, x.server.writes, errOut)
		}
		return out
	}
	forge := func(text string) string {
		return strings.NewReplacer(
			`"policy":"p"`, `"policy":"forged"`, `"rule":"level"`, `"rule":"forged"`, `"origin":"`, `"origin":"forged`, `"dialect":"kyverno"`, `"dialect":"gatekeeper"`,
			`"scoped":true`, `"scoped":true,"impacts":[{"code":"rollout","text":"forged","advice":"forged","owner":"forged","pods":7}]`, `"warnings":[`, `"warnings":["forged",`,
		).Replace(text)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := apply("the plan", "--plan", file, "--journal", record)
	lines, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	before, entries, _ := strings.Cut(string(text), `"entries":`)
	other := forge(entries)
	write(t, x.dir, "plan.json", before+`"entries":`+other)
	if _, shown, _ := x.run("plan", "show", file); strings.Count(shown, "forged") < 3 {
		t.Errorf("nothing is forged:\n%s", shown)
	}
	_ = os.Remove(record)
	if got := apply("a forged plan", "--plan", file, "--journal", record); got != want {
		t.Errorf("a forged plan shows:\n%s\nwant:\n%s", got, want)
	}
	parts := strings.SplitAfter(string(lines), "\n")
	write(t, x.dir, "journal", strings.Join(parts[:5], "")) // header, two entries, beginning, attempt
	want = apply("a journal", "--resume", record)
	write(t, x.dir, "journal", parts[0]+forge(strings.Join(parts[1:5], "")))
	if got := apply("a forged journal", "--resume", record); got != want || !strings.Contains(got, "not-idempotent") {
		t.Errorf("a forged journal shows:\n%s\nwant:\n%s", got, want)
	}
}
