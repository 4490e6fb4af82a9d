package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/test/e2e/internal/controlplane"
)

var updateDocs = flag.Bool("update-docs", false, "write what commands print into the console blocks of README.md and docs")

// notRun lists the beginnings of the commands in the documents that the test
// leaves alone, with the reason.
var notRun = map[string]string{
	"make ":         "builds the plugin, or starts the tests themselves",
	"kubectl krew ": "fetches a release from the network",
	"go install ":   "puts the plugin beside other programs of the user",
}

// TestDocs runs the commands of README.md and docs/*.md, document by
// document and in their order, and compares their output and exit codes with what
// the document shows. Each document has a cluster for itself, as good as new, that holds examples/cluster and
// testdata/docs/NAME.yaml, and a directory that holds examples and the files that
// the document shows.
func TestDocs(t *testing.T) {
	if os.Getenv("E2E_KUBECONFIG") != "" {
		t.Skip("the documents show a cluster that holds nothing but the examples")
	}
	assets, err := controlplane.Locate(t.Context(), os.Stderr)
	check(t, err)
	plugin := t.TempDir()
	check(t, buildPlugin(plugin))
	paths, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	check(t, err)
	met, planes := map[string]bool{}, &reusedPlanes{assets: assets, all: t}
	for _, path := range append(paths, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(path)
		check(t, err)
		doc := parseDocument(string(text))
		for _, c := range doc.commands {
			met[c.notRun()] = true
		}
		if len(doc.commands)+len(doc.pipelines) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			reader := newReader(t, planes, plugin)
			if filepath.Base(path) == fleetPage {
				reader.addClusters(t, planes)
			}
			reader.prepare(t, strings.TrimSuffix(filepath.Base(path), ".md"), doc)
			reader.follow(t, doc)
			if *updateDocs {
				check(t, os.WriteFile(path, []byte(doc.String()), 0o644))
			}
		})
	}
	for beginning := range notRun {
		if !met[beginning] {
			t.Errorf("no document has a command that begins with %q: take it off the list", beginning)
		}
	}
}

// reader does what a document says.
type reader struct {
	dir, home string
	env       []string
	server    string
	runs      []string // IDs of the runs so far, the oldest first
}

// reusedPlanes starts as many planes as are used at a time, and empties those that are used again.
type reusedPlanes struct {
	assets controlplane.Assets
	all    *testing.T // at whose end they are stopped

	mu   sync.Mutex
	free []*controlplane.Plane
}

// take is a plane that holds nothing, for as long as a test runs.
func (r *reusedPlanes) take(t *testing.T) *controlplane.Plane {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var plane *controlplane.Plane
	if n := len(r.free); n > 0 {
		plane, r.free = r.free[n-1], r.free[:n-1]
	} else {
		var err error
		plane, err = controlplane.Start(context.Background(), r.assets)
		check(t, err)
		r.all.Cleanup(func() { check(r.all, plane.Stop()) })
	}
	empty, err := plane.Stored(t.Context())
	check(t, err)
	t.Cleanup(func() {
		check(t, plane.Reset(context.Background(), empty))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.free = append(r.free, plane)
	})
	return plane
}

// newReader has a cluster for itself.
func newReader(t *testing.T, planes *reusedPlanes, plugin string) *reader {
	t.Helper()
	plane := planes.take(t)
	r := &reader{dir: t.TempDir(), home: t.TempDir()}
	config := plane.Config()
	named := *config.Contexts[config.CurrentContext]
	named.Namespace = "shop"
	r.server = config.Clusters[named.Cluster].Server
	config.CurrentContext, config.Contexts = "demo", map[string]*clientcmdapi.Context{"demo": &named}
	kubeconfig := filepath.Join(r.home, "kubeconfig")
	check(t, clientcmd.WriteToFile(*config, kubeconfig))
	r.env = append(os.Environ(),
		"HOME="+r.home, "XDG_STATE_HOME=", "KUBECONFIG="+kubeconfig, "NO_COLOR=1",
		"GITHUB_STEP_SUMMARY="+filepath.Join(r.home, "summary.md"),
		"PATH="+strings.Join([]string{plugin, filepath.Dir(planes.assets.Program("kubectl")), os.Getenv("PATH")}, string(os.PathListSeparator)))
	return r
}

// fleetPage is the document about several clusters, and fleetContexts are theirs.
const fleetPage = "fleet.md"

var fleetContexts = []string{"staging", "prod-eu", "prod-us"}

// addClusters starts a cluster for each of fleetContexts, which take the place of the first one. A context
// prod-old is that of a cluster that is down.
func (r *reader) addClusters(t *testing.T, planes *reusedPlanes) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for _, name := range fleetContexts {
		one := planes.take(t).Config()
		at := one.Contexts[one.CurrentContext]
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "shop"}
		config.Clusters[name], config.AuthInfos[name] = one.Clusters[at.Cluster], one.AuthInfos[at.AuthInfo]
	}
	config.Contexts["prod-old"] = &clientcmdapi.Context{Cluster: "down", AuthInfo: "staging", Namespace: "shop"}
	config.Clusters["down"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.CurrentContext = fleetContexts[0]
	check(t, clientcmd.WriteToFile(*config, filepath.Join(r.home, "kubeconfig")))
}

// prepare creates the objects and files that the document assumes.
func (r *reader) prepare(t *testing.T, name string, doc *document) {
	t.Helper()
	check(t, os.CopyFS(filepath.Join(r.dir, "examples"), os.DirFS(filepath.Join("..", "..", "examples"))))
	for _, file := range doc.files {
		path := filepath.Join(r.dir, file.name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(file.text), 0o600))
	}
	setup := "kubectl create -f examples/cluster"
	if name+".md" == fleetPage {
		setup = "for c in " + strings.Join(fleetContexts, " ") + "; do kubectl create --context $c -f examples/cluster || exit; done"
	}
	there, err := filepath.Abs(filepath.Join("testdata", "docs", name+".yaml"))
	check(t, err)
	if _, err := os.Stat(there); err == nil {
		// What a file defines and what it uses come in one file: tried again
		// until the server serves the former.
		setup += fmt.Sprintf(" && for i in $(seq 50); do kubectl apply -f %[1]s 2>/dev/null && exit; sleep 0.2; done; kubectl apply -f %[1]s", there)
	}
	if code, out := r.run(t, setup); code != 0 {
		t.Fatalf("preparing the cluster: %s", out)
	}
}

// follow runs the commands, and then the scripts of the pipelines.
func (r *reader) follow(t *testing.T, doc *document) {
	t.Helper()
	for _, c := range doc.commands {
		if c.notRun() != "" {
			continue
		}
		code, out := r.run(t, r.withRealIDs(c.text))
		if code != c.exit() {
			t.Errorf("line %d: %s: exit code %d, the document says %d\n%s", c.line, c.text, code, c.exit(), out)
		}
		if got := strings.TrimRight(r.asShown(t, out), "\n"); c.recorded && !c.shows(got) {
			if *updateDocs {
				c.output = got
				continue
			}
			t.Errorf("line %d: %s prints otherwise (-document +now; -update-docs writes it):\n%s", c.line, c.text,
				cmp.Diff(strings.Split(c.output, "\n"), strings.Split(got, "\n")))
		}
	}
	for _, script := range doc.pipelines {
		if code, out := r.run(t, "set -eo pipefail\n"+script); code != 0 {
			t.Errorf("pipeline script %s: exit code %d\n%s", script, code, out)
		}
	}
}

// run has bash run a command and returns all that a terminal would show.
func (r *reader) run(t *testing.T, command string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.env, &out, &out
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	r.noteRuns(t)
	return cmd.ProcessState.ExitCode(), progressLine.ReplaceAllString(out.String(), "")
}

// progressLine is what a run says that takes longer than on the machine of a document.
var progressLine = regexp.MustCompile(`(?m)^progress: .*\n`)

// journalID matches the journal of a run, and the directory of one on several clusters.
var journalID = regexp.MustCompile(`-([0-9a-f]{8})(\.jsonl)?$`)

// noteRuns learns the IDs of the runs that have begun since.
func (r *reader) noteRuns(t *testing.T) {
	t.Helper()
	journals, err := filepath.Glob(filepath.Join(r.home, ".local", "state", "kubectl-mutate", "*"))
	check(t, err)
	for _, journal := range journals {
		if id := journalID.FindStringSubmatch(journal); id != nil && !strings.Contains(strings.Join(r.runs, " "), id[1]) {
			r.runs = append(r.runs, id[1])
		}
	}
}

// idShown is what the documents call the nth run: 0a1b2c3d, 1b2c3d4e, ...
func idShown(n int) string { return fmt.Sprintf("%08x", 0x0a1b2c3d+uint32(n)*0x11111111) }

func (r *reader) withRealIDs(command string) string {
	for n, id := range r.runs {
		command = strings.ReplaceAll(command, idShown(n), id)
	}
	return command
}

var (
	momentShown = regexp.MustCompile(`\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d`)
	stampShown  = regexp.MustCompile(`\d{8}T\d{6}Z`)
	uidShown    = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// asShown replaces what differs from run to run by what the documents show.
func (r *reader) asShown(t *testing.T, out string) string {
	t.Helper()
	for n, id := range r.runs {
		out = strings.ReplaceAll(out, id, idShown(n))
	}
	out = strings.ReplaceAll(out, r.home, "/home/you")
	out = strings.ReplaceAll(out, r.server, "https://203.0.113.10:6443")
	out = momentShown.ReplaceAllString(out, "2026-11-21${1}10:00:00")
	out = stampShown.ReplaceAllString(out, "20261121T100000Z")
	return uidShown.ReplaceAllString(out, "a072e5b8-a595-46f2-9bdb-c61d55a4ef30")
}

// document is what a reader of a Markdown file does: the commands of its sh and
// console blocks, the files that it shows, and the scripts of its pipelines.
type document struct {
	parts     []any // string or *command, in order; together they are the text
	commands  []*command
	files     []docFile
	pipelines []string
}

type docFile struct{ name, text string }

// command is one that the document has the reader type. In a sh block that is a line, in
// a console block what stands behind a "$ ", with the output below it. A
// line that ends with a backslash continues in the next.
type command struct {
	line     int
	text     string
	recorded bool // the output is part of the document
	output   string
}

var exitSaid = regexp.MustCompile(`#.*\bexits (\d+)`)

// exit is the code that the document announces, in a comment like "# exits 1".
func (c *command) exit() int {
	if said := exitSaid.FindStringSubmatch(c.text); said != nil {
		code, _ := strconv.Atoi(said[1]) // digits
		return code
	}
	return 0
}

// notRun is the row of the table of that name, "" if there is none.
func (c *command) notRun() string {
	for beginning := range notRun {
		if strings.HasPrefix(c.text, beginning) {
			return beginning
		}
	}
	return ""
}

// shows reports whether the document shows this output. A line "..." stands for any
// lines.
func (c *command) shows(got string) bool {
	pieces := strings.Split("\n"+c.output+"\n", "\n...\n")
	for i, piece := range pieces {
		pieces[i] = regexp.QuoteMeta(piece)
	}
	return regexp.MustCompile(`\A` + strings.Join(pieces, `\n(?s:.*\n)?`) + `\z`).MatchString("\n" + got + "\n")
}

func (d *document) String() string {
	var text strings.Builder
	for _, part := range d.parts {
		switch part := part.(type) {
		case string:
			text.WriteString(part)
		case *command:
			if part.output != "" {
				text.WriteString(part.output + "\n")
			}
		}
	}
	return text.String()
}

var (
	fence    = regexp.MustCompile("^```(\\S*)")
	fileName = regexp.MustCompile("`([^` ]+\\.ya?ml)`:$")
)

// parseDocument reads Markdown. A yaml block is a file when the paragraph before it
// ends with its name in backquotes and a colon.
func parseDocument(text string) *document {
	d := &document{}
	lines := strings.SplitAfter(text, "\n")
	before := ""
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], "\n")
		d.parts = append(d.parts, lines[i])
		opened := fence.FindStringSubmatch(line)
		if opened == nil {
			if strings.TrimSpace(line) != "" {
				before = line
			}
			continue
		}
		length := slices.IndexFunc(lines[i+1:], func(l string) bool { return strings.HasPrefix(l, "```") })
		if length < 0 {
			length = len(lines) - i - 1
		}
		block := lines[i+1 : i+1+length]
		switch opened[1] {
		case "sh":
			d.addShell(block, i+2)
		case "console":
			d.addConsole(block, i+2)
		default:
			d.parts = append(d.parts, strings.Join(block, ""))
			if name := fileName.FindStringSubmatch(before); name != nil && opened[1] == "yaml" {
				d.addFile(docFile{name: name[1], text: strings.Join(block, "")})
			}
		}
		i += length + 1
		if i < len(lines) {
			d.parts = append(d.parts, lines[i])
		}
	}
	return d
}

func (d *document) addShell(block []string, first int) {
	d.parts = append(d.parts, strings.Join(block, ""))
	for i := 0; i < len(block); i++ {
		c := &command{line: first + i}
		c.text, i = joined(block, i)
		if c.text != "" && !strings.HasPrefix(c.text, "#") {
			d.commands = append(d.commands, c)
		}
	}
}

func (d *document) addConsole(block []string, first int) {
	var c *command
	var output []string
	finish := func() {
		if c != nil {
			// The blank line between an output and the next command is the document's.
			c.output = strings.TrimRight(strings.Join(output, ""), "\n")
			d.parts = append(d.parts, c)
			if n := len(output); n > 0 && output[n-1] == "\n" {
				d.parts = append(d.parts, "\n")
			}
		}
		output = nil
	}
	for i := 0; i < len(block); i++ {
		if !strings.HasPrefix(block[i], "$ ") {
			output = append(output, block[i])
			continue
		}
		finish()
		start := i
		c = &command{line: first + i, recorded: true}
		c.text, i = joined(block, i)
		c.text = strings.TrimPrefix(c.text, "$ ")
		d.parts = append(d.parts, strings.Join(block[start:i+1], ""))
		d.commands = append(d.commands, c)
	}
	finish()
}

// joined is the command that begins in a line, and the last line of it.
func joined(block []string, i int) (string, int) {
	text := block[i]
	for strings.HasSuffix(text, "\\\n") && i+1 < len(block) {
		i++
		text += block[i]
	}
	return strings.TrimSpace(text), i
}

// addFile adds a file, and what a pipeline in it calls the plugin for.
func (d *document) addFile(file docFile) {
	d.files = append(d.files, file)
	if !strings.HasPrefix(file.name, ".git") {
		return
	}
	var pipeline any
	if err := yaml.Unmarshal([]byte(file.text), &pipeline); err != nil {
		d.pipelines = append(d.pipelines, "echo "+strconv.Quote(file.name+": "+err.Error())+"; false")
		return
	}
	for _, script := range scripts(pipeline) {
		if strings.Contains(script, "kubectl mutate") {
			d.pipelines = append(d.pipelines, script)
		}
	}
}

// scripts are the values of "run" (GitHub) and "script" (GitLab), in the order of
// jobs by name and of steps as they stand.
func scripts(v any) []string {
	var all []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			all = append(all, scripts(item)...)
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			switch value := v[key].(type) {
			case string:
				if key == "run" {
					all = append(all, value)
				}
			case []any:
				if key == "script" {
					all = append(all, strings.Join(texts(value), "\n"))
					continue
				}
				all = append(all, scripts(value)...)
			default:
				all = append(all, scripts(value)...)
			}
		}
	}
	return all
}

func texts(list []any) []string {
	var all []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

func TestDocumentsAreReadAsTheyAreWritten(t *testing.T) {
	text := strings.Join([]string{
		"Write `p/a.yaml`:", "", "```yaml", "a: 1", "```", "",
		"```sh", "kubectl mutate x \\", "  -A   # the rest; exits 1", "# a remark", "```", "",
		"```console", "$ kubectl mutate y", "one", "...", "three", "", "$ kubectl mutate z", "```", "",
		"In `.gitlab-ci.yml`:", "", "```yaml", "job:", "  script:", "    - kubectl mutate q", "    - echo", "```", "",
	}, "\n")
	d := parseDocument(text)
	if diff := cmp.Diff(text, d.String()); diff != "" {
		t.Errorf("the text is not kept (-want +got):\n%s", diff)
	}
	if len(d.commands) != 3 {
		t.Fatalf("%d commands, want 3", len(d.commands))
	}
	x, y, z := d.commands[0], d.commands[1], d.commands[2]
	if x.line != 8 || x.exit() != 1 || x.recorded || !strings.Contains(x.text, "\\\n  -A") {
		t.Errorf("the command of the sh block: %+v", x)
	}
	if y.line != 14 || y.exit() != 0 || !y.shows("one\ntwo\nthree") || !y.shows("one\nthree") || y.shows("one\ntwo") {
		t.Errorf("the first command of the console block: %+v", y)
	}
	if !z.shows("") || z.shows("text") {
		t.Errorf("the second command of the console block: %+v", z)
	}
	if diff := cmp.Diff([]string{"kubectl mutate q\necho"}, d.pipelines); diff != "" {
		t.Errorf("pipelines (-want +got):\n%s", diff)
	}
	if len(d.files) != 2 || d.files[0] != (docFile{name: "p/a.yaml", text: "a: 1\n"}) {
		t.Errorf("files: %+v", d.files)
	}
}
