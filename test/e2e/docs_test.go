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
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-mutate/kubectl-mutate/test/e2e/internal/controlplane"
)

var updateDocs = flag.Bool("update-docs", false, "write what commands print into the console blocks of README.md and docs")

// notRun lists the beginnings of the commands in the documents that the test
// leaves alone, with the reason.
var notRun = map[string]string{
	"make ":         "builds the plugin, or starts the tests themselves",
	"kubectl krew ": "fetches a release from the network",
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
