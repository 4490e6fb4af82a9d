package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
)

// appending is a namespace with ConfigMaps, and a policy that appends to each of them: what is written
// twice shows.
type appending struct {
	maps      dynamic.ResourceInterface
	namespace string
	program   string
	dir       string // with policy.yaml, and a kubeconfig that leads through a proxy
	objects   int
}

const appendPolicy = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: append}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap], names: ["log-*"]}}]},
	mutate: {patchStrategicMerge: {data: {log: "{{ request.object.data.log }}x"}}}}]}}`

// newAppending makes the objects, and a proxy to the server that has each request go through meddle.
func newAppending(t *testing.T, program string, objects int, meddle func(w http.ResponseWriter, r *http.Request, pass http.Handler)) *appending {
	t.Helper()
	admin, err := dynamic.NewForConfig(restConfig(t))
	check(t, err)
	a := &appending{namespace: newNamespace(t), program: program, dir: t.TempDir(), objects: objects}
	a.maps = admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(a.namespace)
	for i := range objects {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("log-%02d", i)}, "data": map[string]any{"log": "-"},
		}}
		_, err := a.maps.Create(t.Context(), u, metav1.CreateOptions{})
		check(t, err)
	}
	target, err := url.Parse(restConfig(t).Host)
	check(t, err)
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.Transport, err = rest.TransportFor(restConfig(t))
	check(t, err)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { meddle(w, r, pass) }))
	t.Cleanup(proxy.Close)
	config := server.as("", a.namespace)
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = proxy.URL, nil
	}
	check(t, clientcmd.WriteToFile(*config, filepath.Join(a.dir, "kubeconfig")))
	check(t, os.WriteFile(filepath.Join(a.dir, "policy.yaml"), []byte(appendPolicy), 0o600))
	return a
}

func programOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, buildPlugin(dir))
	return filepath.Join(dir, "kubectl-mutate")
}

// mostTime is how long a process may take: far longer than it does, so that one that hangs is found.
const mostTime = 2 * time.Minute

// command is the plugin with arguments, which does not run longer than mostTime.
func (a *appending) command(t *testing.T, arguments ...string) (cmd *exec.Cmd, output *strings.Builder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	t.Cleanup(cancel)
	cmd, output = exec.CommandContext(ctx, a.program, arguments...), &strings.Builder{}
	cmd.Env = []string{"HOME=" + a.dir, "KUBECONFIG=" + filepath.Join(a.dir, "kubeconfig"), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = output, output
	return cmd, output
}

func (a *appending) apply(t *testing.T, record string) (cmd *exec.Cmd, output *strings.Builder) {
	t.Helper()
	return a.command(t, "apply-existing", "configmaps", "-p", filepath.Join(a.dir, "policy.yaml"), "--yes", "--list-all", "--on-error=continue", "--concurrency=4", "--journal", record)
}

// waited returns the exit code of a process that has ended by itself.
func waited(t *testing.T, cmd *exec.Cmd, output *strings.Builder) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if code := cmd.ProcessState.ExitCode(); err == nil || errors.As(err, &exit) && code >= 0 {
		return code
	}
	t.Fatalf("%v\n%s", err, output)
	return 0
}

// checkAppended demands that every object was appended to once.
func (a *appending) checkAppended(t *testing.T) {
	t.Helper()
	list, err := a.maps.List(t.Context(), metav1.ListOptions{})
	check(t, err)
	n := 0
	for _, u := range list.Items {
		if !strings.HasPrefix(u.GetName(), "log-") {
			continue
		}
		n++
		if text, _, _ := unstructured.NestedString(u.Object, "data", "log"); text != "-x" {
			t.Errorf("%s has %q, want %q", u.GetName(), text, "-x")
		}
	}
	if n != a.objects {
		t.Errorf("%d objects, want %d", n, a.objects)
	}
}

// writtenBy counts the entries of a journal that were written. A run that finds all of its objects
// drifted begins none.
func writtenBy(t *testing.T, file string) int {
	t.Helper()
	j, err := journal.Read(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	check(t, err)
	n := 0
	for _, e := range j.Entries {
		for _, r := range e.Results {
			if r.Written {
				n++
			}
		}
	}
	return n
}

func isWrite(r *http.Request) bool {
	return r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "" && strings.Contains(r.URL.Path, "/configmaps/")
}

// TestSimultaneousRuns has two processes append to the same objects, both of which have read them
// before either writes: each object is appended to once, and the other process is told so.
func TestSimultaneousRuns(t *testing.T) {
	program := programOf(t)
	const trials, objects = 5, 20
	for trial := range trials {
		t.Run(fmt.Sprint(trial), func(t *testing.T) {
			var listed sync.WaitGroup
			listed.Add(2)
			a := newAppending(t, program, objects, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				pass.ServeHTTP(w, r)
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps") {
					listed.Done()
					listed.Wait()
				}
			})
			var commands [2]*exec.Cmd
			var output [2]*strings.Builder
			var record [2]string
			for i := range commands {
				record[i] = filepath.Join(a.dir, fmt.Sprintf("journal-%d", i))
				commands[i], output[i] = a.apply(t, record[i])
				check(t, commands[i].Start())
			}
			written, drifted := 0, 0
			for i, cmd := range commands {
				code := waited(t, cmd, output[i])
				d := strings.Count(output[i].String(), " drifted in namespace ")
				w := writtenBy(t, record[i])
				written, drifted = written+w, drifted+d
				want := 0
				switch {
				case w > 0 && d > 0:
					want = 3
				case d > 0:
					want = 2
				}
				if code != want {
					t.Errorf("%d written, %d drifted: exit code %d, want %d\n%s", w, d, code, want, output[i])
				}
			}
			if written != objects || drifted != objects {
				t.Errorf("%d written and %d drifted, want %d each", written, drifted, objects)
			}
			a.checkAppended(t)
		})
	}
}

// TestInterruptedWrites interrupts a run at its writes, each of which the server has got when the signal
// comes: the run ends by itself, its journal knows what became of each write, and resuming
// it writes the rest, once.
func TestInterruptedWrites(t *testing.T) {
	program := programOf(t)
	for name, signals := range map[string][]os.Signal{
		"SIGTERM": {syscall.SIGTERM}, "SIGINT": {syscall.SIGINT}, "SIGINT twice": {syscall.SIGINT, syscall.SIGINT}, "SIGINT and SIGTERM": {syscall.SIGINT, syscall.SIGTERM},
	} {
		for _, at := range []int{1, 7, 30} {
			t.Run(fmt.Sprintf("%s at write %d", name, at), func(t *testing.T) {
				const objects = 30
				var mu sync.Mutex
				var cmd *exec.Cmd
				writes := 0
				a := newAppending(t, program, objects, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
					answer := httptest.NewRecorder()
					pass.ServeHTTP(answer, r)
					if isWrite(r) {
						mu.Lock()
						if writes++; writes == at {
							for _, s := range signals {
								_ = cmd.Process.Signal(s)
								time.Sleep(100 * time.Millisecond) // two at once may arrive as one
							}
						}
						mu.Unlock()
					}
					for k, v := range answer.Header() {
						w.Header()[k] = v
					}
					w.WriteHeader(answer.Code)
					_, _ = w.Write(answer.Body.Bytes())
				})
				record := filepath.Join(a.dir, "journal")
				command, output := a.apply(t, record)
				mu.Lock()
				cmd = command
				err := cmd.Start()
				mu.Unlock()
				check(t, err)
				code := waited(t, cmd, output)
				j, err := journal.Read(record)
				check(t, err)
				n := j.Count()
				switch {
				case at < objects-4 && (code != 130 || n[journal.Planned] == 0):
					t.Errorf("exit code %d, journal %v\n%s", code, n, output)
				case len(signals) == 1 && n[journal.InDoubt] > 0:
					t.Errorf("the outcome of %d writes is open\n%s", n[journal.InDoubt], output)
				}
				if n[journal.Planned]+n[journal.InDoubt] > 0 {
					resumed, output := a.command(t, "apply-existing", "--resume", record, "--yes", "--on-error=continue")
					check(t, resumed.Start())
					if code := waited(t, resumed, output); code != 0 {
						t.Errorf("resumed: exit code %d\n%s", code, output)
					}
				}
				a.checkAppended(t)
			})
		}
	}
}

// moments are those between two requests of kubectl-mutate: before the first that is
// like this, or after it.
var moments = map[string]struct {
	like  func(*http.Request) bool
	after bool
}{
	"listing": {like: func(r *http.Request) bool { return r.Method == http.MethodGet && path.Base(r.URL.Path) == "configmaps" }, after: true},
	"review":  {like: func(r *http.Request) bool { return path.Base(r.URL.Path) == "selfsubjectaccessreviews" }}, // after the show
	"dry-run": {like: func(r *http.Request) bool { return r.Method == http.MethodPatch && r.URL.Query().Has("dryRun") }},
	"write":   {like: func(r *http.Request) bool { return r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") }},
}

// cmdMeanwhile makes something happen between two requests of kubectl-mutate:
// meanwhile listing|review|dry-run|write kubectl ARG...
func cmdMeanwhile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || moments[args[0]].like == nil || args[1] != "kubectl" {
		ts.Fatalf("usage: meanwhile listing|review|dry-run|write kubectl ARG...")
	}
	s := scriptOf(ts)
	home, dir := ts.Getenv("HOME"), ts.MkAbs(".")
	act := func() error {
		cmd := s.kubectlCommand(home, args[2:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	direct := filepath.Join(home, "KUBECONFIG")
	config, err := clientcmd.BuildConfigFromFlags("", direct)
	ts.Check(err)
	proxy, err := newInterloper(config, args[0], act)
	ts.Check(err)
	ts.Defer(proxy.Close)

	through, err := clientcmd.LoadFromFile(direct)
	ts.Check(err)
	for _, cluster := range through.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = proxy.URL, nil
	}
	file := filepath.Join(home, "through-proxy")
	ts.Check(clientcmd.WriteToFile(*through, file))
	ts.Setenv("KUBECONFIG", file)
}

// newInterloper is a proxy to the API server that calls act once, in a moment.
// Should act fail, its error is the answer to the request.
func newInterloper(config *rest.Config, moment string, act func() error) (*httptest.Server, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	acted := sync.OnceValue(act)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := moments[moment]
		if at.after {
			proxy.ServeHTTP(w, r)
		}
		if at.like(r) {
			if err := acted(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		if !at.after {
			proxy.ServeHTTP(w, r)
		}
	})), nil
}

// kubectlCommand is kubectl as the administrator, whichever user the script acts as,
// in the script's own namespace.
func (s *script) kubectlCommand(home string, args ...string) *exec.Cmd {
	cmd := exec.Command(server.kubectl, append([]string{"--namespace", s.namespaces[0]}, args...)...)
	cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "KUBECONFIG")}
	return cmd
}

// bothPartsPolicy changes an object and its status, which are two requests.
const bothPartsPolicy = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: both}, spec: {mutateExistingOnPolicyUpdate: true, rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap], names: ["settings-*"]}}]},
	mutate: {targets: [{apiVersion: v1, kind: ReplicationController, namespace: shop, name: app}], patchStrategicMerge: {metadata: {labels: {seen: "yes"}}, status: {conditions: [{type: Seen, status: "True"}]}}}}]}}`

// The server goes away between the two requests for an object: the status is left to --resume, which is told. The object is
// written once; what a watch makes twice, by a rule that appends, stays to be seen.
func TestStatusOutlastsTheAbsenceOfTheServer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lost    string // the write whose answer does not come
		watches bool
	}{
		"a run, that of the object": {"app", false}, "a run, that of the status": {"status", false},
		"a watch, that of the object": {"app", true}, "a watch, that of the status": {"status", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &appendingWatch{clusters: startClusters(t, "one"), t: t, program: programOf(t)}
			var writes atomic.Int32
			a.through(t, "proxy", "one", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				at := path.Base(r.URL.Path)
				written := r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun")
				if written && at == "app" && !a.away.Load() {
					writes.Add(1)
				}
				if written && at == test.lost && a.begun.CompareAndSwap(false, true) {
					if a.away.Store(true); at == "app" { // it is stored
						pass.ServeHTTP(&discarded{header: http.Header{}}, r)
					}
				}
				if a.away.Load() {
					abort()
				}
				pass.ServeHTTP(w, r)
			})
			policy, label := bothPartsPolicy, "yes"
			if test.watches {
				policy, label = strings.Replace(policy, `"yes"`, `"{{ target.metadata.labels.seen || '' }}x"`, 1), "x"
			}
			check(t, os.WriteFile(filepath.Join(a.dir, "append.yaml"), []byte(policy), 0o600))
			a.create(t, "one", fleetObject("Namespace", "shop", nil), fleetObject("ReplicationController", "app", map[string]any{"spec": map[string]any{
				"replicas": int64(0), "selector": map[string]any{"a": "b"}, "template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
				},
			}}))
			const left = "the server did not answer any more when the status was to be written: continue with --resume"
			if test.watches {
				a.watch()
				a.trigger("first")
				a.await("looking it up again")
				a.away.Store(false)
				a.await(left)
				a.end()
			} else {
				a.trigger("first")
				code, out, errOut := a.run(t, a.program, "apply-existing", "-n", "shop", "-p", "append.yaml", "--context", "proxy", "--yes", "--request-timeout", "2s")
				if code == 0 || test.lost == "status" && !strings.Contains(out+errOut, left) || !strings.Contains(errOut, "To continue with 1 object: ") {
					t.Errorf("exit code %d\n%s\n%s", code, out, errOut)
				}
				a.away.Store(false)
			}
			a.parts(label, 0)
			if !test.watches {
				a.follow("apply-existing", "--resume", "latest", "--yes")
				a.parts(label, 1)
			}
			if n := writes.Load(); n != 1 {
				t.Errorf("the object is written %d times\n%s", n, a.said())
			}
		})
	}
}

// parts checks the label that bothPartsPolicy sets, and that the status has so many conditions.
func (a *appendingWatch) parts(label string, conditions int) {
	a.t.Helper()
	client, err := dynamic.NewForConfig(a.client(a.t, "one"))
	check(a.t, err)
	u, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}).Namespace("shop").Get(a.t.Context(), "app", metav1.GetOptions{})
	check(a.t, err)
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	check(a.t, err)
	if got := u.GetLabels()["seen"]; got != label || len(list) != conditions {
		a.t.Fatalf("label %q, %d conditions, want %q and %d\n%s", got, len(list), label, conditions, a.said())
	}
}
