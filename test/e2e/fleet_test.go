package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-mutate/kubectl-mutate/test/e2e/internal/controlplane"
)

// clusters are several API servers, and a kubeconfig with a context for each.
type clusters struct {
	dir    string
	config *clientcmdapi.Config
	planes map[string]*controlplane.Plane
}

// startClusters starts an API server for each name, side by side.
func startClusters(t *testing.T, names ...string) *clusters {
	t.Helper()
	if os.Getenv("E2E_KUBECONFIG") != "" {
		t.Skip("the test starts clusters of its own")
	}
	assets, err := controlplane.Locate(t.Context(), os.Stderr)
	check(t, err)
	c := &clusters{dir: t.TempDir(), config: clientcmdapi.NewConfig(), planes: map[string]*controlplane.Plane{}}
	c.config.CurrentContext = names[0]
	planes, errs := make([]*controlplane.Plane, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() { planes[i], errs[i] = controlplane.Start(context.Background(), assets) })
	}
	all.Wait()
	for i, name := range names {
		check(t, errs[i])
		c.planes[name] = planes[i]
		t.Cleanup(func() { c.stop(t, name) })
		one := planes[i].Config()
		at := one.Contexts[one.CurrentContext]
		c.config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "shop"}
		c.config.Clusters[name], c.config.AuthInfos[name] = one.Clusters[at.Cluster], one.AuthInfos[at.AuthInfo]
	}
	return c
}

// stop ends an API server, once.
func (c *clusters) stop(t *testing.T, name string) {
	if plane := c.planes[name]; plane != nil {
		delete(c.planes, name)
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// client returns a client of a context.
func (c *clusters) client(t *testing.T, name string) *rest.Config {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveClientConfig(*c.config, name, nil, nil).ClientConfig()
	check(t, err)
	config.QPS = -1
	return config
}

// through adds a context that leads to a cluster through a handler.
func (c *clusters) through(t *testing.T, name, cluster string, meddle func(w http.ResponseWriter, r *http.Request, pass http.Handler)) {
	t.Helper()
	config := c.client(t, cluster)
	target, err := url.Parse(config.Host)
	check(t, err)
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	pass.Transport, err = rest.TransportFor(config)
	check(t, err)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { meddle(w, r, pass) }))
	t.Cleanup(proxy.Close)
	t.Cleanup(proxy.CloseClientConnections)
	c.config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "shop"}
	c.config.Clusters[name], c.config.AuthInfos[name] = &clientcmdapi.Cluster{Server: proxy.URL}, clientcmdapi.NewAuthInfo()
}

// create makes objects of the namespace shop.
func (c *clusters) create(t *testing.T, name string, objects ...*unstructured.Unstructured) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.client(t, name))
	check(t, err)
	for _, u := range objects {
		kind := strings.ToLower(u.GetKind()) + "s"
		var at dynamic.ResourceInterface = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: kind})
		if u.GetKind() != "Namespace" {
			at = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: kind}).Namespace("shop")
		}
		_, err := at.Create(t.Context(), u, metav1.CreateOptions{})
		check(t, err)
	}
}

func fleetObject(kind, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
	for key, value := range content {
		u.Object[key] = value
	}
	return u
}

// level is the field that fleetPolicy sets on each ConfigMap with the name app-*.
func (c *clusters) level(t *testing.T, cluster, name string) string {
	t.Helper()
	client, err := dynamic.NewForConfig(c.client(t, cluster))
	check(t, err)
	u, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("shop").Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)
	level, _, err := unstructured.NestedString(u.Object, "data", "level")
	check(t, err)
	return level
}

const fleetPolicy = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: level}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap], names: ["app-*"]}}]},
	mutate: {patchStrategicMerge: {data: {level: info}}}}]}}`

// command returns the plugin with arguments, on the clusters.
func (c *clusters) command(t *testing.T, program string, arguments ...string) (*exec.Cmd, *strings.Builder, *strings.Builder) {
	t.Helper()
	check(t, clientcmd.WriteToFile(*c.config, filepath.Join(c.dir, "kubeconfig")))
	check(t, os.WriteFile(filepath.Join(c.dir, "policy.yaml"), []byte(fleetPolicy), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), mostTime)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Dir, cmd.Env = c.dir, []string{"HOME=" + c.dir, "KUBECONFIG=" + filepath.Join(c.dir, "kubeconfig"), "PATH=" + os.Getenv("PATH")}
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	return cmd, &out, &errOut
}

// run runs the plugin, and returns its exit code.
func (c *clusters) run(t *testing.T, program string, arguments ...string) (int, string, string) {
	t.Helper()
	cmd, out, errOut := c.command(t, program, arguments...)
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatalf("%v: %v\n%s", arguments, err, errOut)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// fleetReport is what the tests read of a report.
type fleetReport struct {
	Clusters []struct {
		Name                       string
		Objects, Changed, Problems int
		Problem                    string
	}
	Changes []struct {
		Object struct{ Cluster, Name string }
	}
	Differences []struct {
		Object struct{ Cluster, Name string }
	}
	Results []struct {
		Object  struct{ Cluster, Name string }
		Outcome string
	}
	Problems []string
	Summary  struct{ Objects, Changed int }
}

func readFleetReport(t *testing.T, text string) fleetReport {
	t.Helper()
	var out fleetReport
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// fleetTest is what a program says of several clusters.
type fleetTest struct {
	*clusters
	program string
}

// What a preview says of several clusters, of which some cannot be read, on three API servers.
func TestFleet(t *testing.T) {
	f := fleetTest{startClusters(t, "eu", "us", "staging"), programOf(t)}
	for i, name := range []string{"eu", "us", "staging"} {
		f.create(t, name, fleetObject("Namespace", "shop", nil))
		for n := range 3 + i {
			f.create(t, name, fleetObject("ConfigMap", fmt.Sprintf("app-%d", n), map[string]any{"data": map[string]any{"level": "debug"}}))
		}
	}
	t.Run("overview", f.overview)
	t.Run("a comparison", f.comparison)
	t.Run("policies", f.policies)
	t.Run("a user who may not read one of them", f.forbidden)
	t.Run("one that is down", f.down)
	t.Run("one that answers slowly, and Ctrl-C", f.slow)
	t.Run("a Secret of one of them", f.secrets)
	t.Run("one that is killed in the middle", f.killed)
}

func (f fleetTest) preview(t *testing.T, want int, arguments ...string) (string, string) {
	t.Helper()
	code, out, errOut := f.run(t, f.program, append([]string{"preview", "configmaps", "-p", "policy.yaml"}, arguments...)...)
	if code != want {
		t.Fatalf("%v: exit code %d, want %d\n%s\n%s", arguments, code, want, out, errOut)
	}
	return out, errOut
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in:\n%s", part, text)
		}
	}
}

func (f fleetTest) overview(t *testing.T) {
	out, _ := f.preview(t, 1, "--contexts", "us,*", "-o", "summary")
	contains(t, out, "CLUSTER   OBJECTS   WOULD CHANGE", "~ ConfigMap: 12 objects in shop on 3 clusters  1 field each  level/r",
		"    on staging (5), us (4), eu (3)", "12 objects evaluated: 12 would change")
	if us, eu := strings.Index(out, "\nus "), strings.Index(out, "\neu "); us < 0 || us > eu {
		t.Errorf("the clusters do not stand in the order in which they were typed:\n%s", out)
	}
}

func (f fleetTest) comparison(t *testing.T) {
	check(t, os.WriteFile(filepath.Join(f.dir, "other.yaml"), []byte(strings.ReplaceAll(fleetPolicy, "info", "warn")), 0o600))
	check(t, os.WriteFile(filepath.Join(f.dir, "same.yaml"), []byte(strings.ReplaceAll(fleetPolicy, "{name: level}", "{name: twin}")), 0o600))
	compare := func(want int, arguments ...string) string {
		code, out, errOut := f.run(t, f.program, append([]string{"compare", "configmaps", "-p", "policy.yaml"}, arguments...)...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d\n%s\n%s", arguments, code, want, out, errOut)
		}
		return out
	}
	contains(t, compare(1, "--with", "other.yaml", "--contexts", "us,eu", "-o", "summary"), "CLUSTER   OBJECTS   DIFFER", "us ", "~ ConfigMap: 7 objects in shop on 2 clusters",
		"DIFFERENT: the two policy sets differ on 7 of ", "old    kyverno level/r   7         0           7")
	contains(t, compare(0, "--with", "same.yaml", "--contexts", "all", "--strict"), "SAME: both policy sets do the same to ", "old    kyverno level/r   12        0           12")
	for _, d := range readFleetReport(t, compare(1, "--with", "other.yaml", "--contexts", "us,eu", "-o", "json")).Differences {
		if d.Object.Cluster != "us" && d.Object.Cluster != "eu" {
			t.Errorf("got %+v", d)
		}
	}
}

func (f fleetTest) policies(t *testing.T) {
	check(t, os.WriteFile(filepath.Join(f.dir, "widgets.yaml"), []byte(strings.NewReplacer("[ConfigMap]", "[Widget]", "{name: level}", "{name: widgets}").Replace(fleetPolicy)), 0o600))
	code, out, errOut := f.run(t, f.program, "policies", "-p", "policy.yaml", "-p", "widgets.yaml", "--contexts", "us,eu")
	if code != 3 {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
	contains(t, out, "CLUSTER   POLICIES   RULES   ERRORS   PROBLEM\nus        2          2       1        widgets.yaml:1: ", "level     r      all        kyverno", "Widget")
	code, out, errOut = f.run(t, f.program, "policies", "-p", "policy.yaml", "--from-cluster", "--contexts", "us,eu", "-o", "json")
	if r := readFleetReport(t, out); code != 0 || len(r.Clusters) != 2 {
		t.Errorf("exit code %d, %+v\n%s", code, r, errOut)
	}
}

func (f fleetTest) forbidden(t *testing.T) {
	f.config.AuthInfos["viewer"] = f.config.AuthInfos["us"].DeepCopy()
	f.config.AuthInfos["viewer"].Impersonate = "viewer"
	f.config.Contexts["forbidden"] = &clientcmdapi.Context{Cluster: "us", AuthInfo: "viewer", Namespace: "shop"}
	out, errOut := f.preview(t, 3, "--contexts", "eu,forbidden", "-o", "json")
	r := readFleetReport(t, out)
	if len(r.Changes) != 3 || r.Changes[0].Object.Cluster != "eu" || r.Clusters[1].Problems != 1 || !strings.Contains(r.Clusters[1].Problem, "forbidden") {
		t.Errorf("got %+v", r)
	}
	contains(t, errOut, `forbidden: error: cannot read configmaps`)
	f.preview(t, 2, "--contexts", "forbidden", "-o", "json")
	delete(f.config.Contexts, "forbidden")
}

func (f fleetTest) down(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	check(t, l.Close())
	f.config.Clusters["down"] = &clientcmdapi.Cluster{Server: "https://" + l.Addr().String()}
	f.config.Contexts["down"] = &clientcmdapi.Context{Cluster: "down", AuthInfo: "us", Namespace: "shop"}
	out, errOut := f.preview(t, 3, "--contexts", "down,eu", "-o", "name", "-q")
	if out != "configmap/app-0 --context=eu\nconfigmap/app-1 --context=eu\nconfigmap/app-2 --context=eu\n" {
		t.Errorf("got %s", out)
	}
	contains(t, errOut, "down: error: The connection to the server "+l.Addr().String()+" was refused")
	f.preview(t, 2, "--contexts", "down", "-o", "name")
	code, out, errOut := f.run(t, f.program, "policies", "-p", "policy.yaml", "--from-cluster", "--contexts", "down,eu")
	if code != 3 || !strings.Contains(out, "down      0          0       0        reading the policies of the cluster: The connection to the server") {
		t.Errorf("exit code %d\n%s\n%s", code, out, errOut)
	}
	code, out, errOut = f.run(t, f.program, "compare", "configmaps", "-p", "policy.yaml", "--with", "same.yaml", "--contexts", "down,eu", "-o", "json")
	if r := readFleetReport(t, out); code != 3 || r.Clusters[0].Problems != 1 || r.Clusters[1].Objects == 0 || r.Summary.Objects != r.Clusters[1].Objects {
		t.Errorf("a comparison: exit code %d, %+v\n%s", code, r, errOut)
	}
	delete(f.config.Contexts, "down")
}

func (f fleetTest) slow(t *testing.T) {
	f.through(t, "slow", "us", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() })
	defer delete(f.config.Contexts, "slow")
	// It takes no place of the others, and is given up after one timeout.
	begun := time.Now()
	_, errOut := f.preview(t, 3, "--contexts", "slow,eu,staging", "--max-clusters-at-once", "1", "--request-timeout", "3s", "-o", "name")
	if took := time.Since(begun); took > mostTime/2 {
		t.Errorf("it took %v to give up", took)
	}
	contains(t, errOut, "slow: error: the server does not answer")

	// Interrupted, the others are shown.
	cmd, out, _ := f.command(t, f.program, "preview", "configmaps", "-p", "policy.yaml", "--contexts", "slow,eu,staging", "--max-clusters-at-once", "1")
	cmd.Stderr = nil
	pipe, err := cmd.StderrPipe()
	check(t, err)
	check(t, cmd.Start())
	said := bufio.NewScanner(pipe)
	for said.Scan() && !strings.Contains(said.Text(), "2 of 3 clusters read, waiting for slow") {
	}
	begun = time.Now()
	check(t, cmd.Process.Signal(syscall.SIGINT))
	last := ""
	for said.Scan() {
		last = said.Text()
	}
	if code := waited(t, cmd, &strings.Builder{}); code != 130 || !strings.HasSuffix(last, ", waiting for slow") || !strings.HasPrefix(last, "error: interrupted after ") {
		t.Errorf("exit code %d\n%s", code, last)
	}
	contains(t, out.String(), "slow      0         0              0        0              interrupted\neu        3         3              0")
	if took := time.Since(begun); took > mostTime/2 {
		t.Errorf("it took %v to end", took)
	}
}

func (f fleetTest) secrets(t *testing.T) {
	f.create(t, "eu", fleetObject("Secret", "app", map[string]any{"stringData": map[string]any{"password": "hunter2-hunter2-hunter2"}}))
	check(t, os.WriteFile(filepath.Join(f.dir, "secrets.yaml"), []byte(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: label}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Secret], names: [app]}}]},
mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]}}`), 0o600))
	for _, format := range []string{"diff", "json", "manifests"} {
		code, out, errOut := f.run(t, f.program, "preview", "-p", "policy.yaml", "-p", "secrets.yaml", "--contexts", "us,eu", "-o", format, "--report", "html=page.html")
		page, err := os.ReadFile(filepath.Join(f.dir, "page.html"))
		check(t, err)
		if code != 1 || strings.Contains(out+errOut+string(page), "aHVudGVyMi1odW50ZXIy") || !strings.Contains(out, "app-0") {
			t.Errorf("-o %s: exit code %d\n%s", format, code, out+errOut)
		}
	}
}

func (f fleetTest) killed(t *testing.T) {
	var once sync.Once
	f.through(t, "dying", "staging", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Get("continue") != "" {
			once.Do(func() { f.stop(t, "staging") })
		}
		pass.ServeHTTP(w, r)
	})
	out, errOut := f.preview(t, 3, "--contexts", "dying,eu,us", "--chunk-size", "2", "--request-timeout", "2s", "-o", "json")
	r := readFleetReport(t, out)
	if r.Clusters[0].Problems == 0 || r.Clusters[1].Changed != 3 || r.Clusters[2].Changed != 4 || len(r.Problems) == 0 || !strings.HasPrefix(r.Problems[0], "dying: ") {
		t.Errorf("got %+v\n%s", r, errOut)
	}
	if r.Clusters[0].Changed == 0 || r.Clusters[0].Changed+7 != len(r.Changes) || r.Summary.Changed != len(r.Changes) {
		t.Errorf("the numbers of a cluster that broke off are others in its row, the total and the changes: %+v", r)
	}
}

// levels are three clusters, each with three ConfigMaps that the policy of a fleet changes.
type levels struct {
	*clusters
	program string
	names   []string // of the clusters that can be reached
}

func startLevels(t *testing.T) *levels {
	t.Helper()
	l := &levels{program: programOf(t), names: []string{"staging", "eu", "us"}}
	l.clusters = startClusters(t, l.names...)
	for _, name := range l.names {
		l.create(t, name, fleetObject("Namespace", "shop", nil))
		for n := range 3 {
			l.create(t, name, fleetObject("ConfigMap", fmt.Sprintf("app-%d", n), map[string]any{"data": map[string]any{"level": "debug"}}))
		}
	}
	return l
}

// are checks the level of all ConfigMaps of each cluster.
func (l *levels) are(t *testing.T, want ...string) {
	t.Helper()
	for i, name := range l.names {
		for n := range 3 {
			if got := l.level(t, name, fmt.Sprintf("app-%d", n)); got != want[i] {
				t.Errorf("level of app-%d on %s is %q, want %q", n, name, got, want[i])
			}
		}
	}
}

// exits runs the plugin, checks its exit code, and returns what it says.
func (l *levels) exits(t *testing.T, want int, arguments ...string) (out, errOut string) {
	t.Helper()
	code, out, errOut := l.run(t, l.program, arguments...)
	if code != want {
		t.Fatalf("%v: exit code %d, want %d\n%s\n%s", arguments, code, want, out, errOut)
	}
	return out, errOut
}

// A directory of plans is applied cluster by cluster, in the order in which they were typed. It stops at the first cluster with
// failures, goes on from there, and is undone.
func TestFleetWrites(t *testing.T) {
	t.Parallel()
	l := startLevels(t)
	var down sync.Map
	l.through(t, "eu/proxy", "eu", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if _, is := down.Load(r.Method); is {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		pass.ServeHTTP(w, r)
	})
	l.exits(t, 1, "preview", "configmaps", "-p", "policy.yaml", "--contexts", "staging,eu/proxy,us", "--save", "plans")
	files, err := os.ReadDir(filepath.Join(l.dir, "plans"))
	check(t, err)
	for i, want := range []string{"001-staging.plan", "002-eu-proxy.plan", "003-us.plan"} {
		info, err := files[i].Info()
		check(t, err)
		if files[i].Name() != want || info.Mode().Perm() != 0o600 {
			t.Errorf("got %s, mode %v, want %s", files[i].Name(), info.Mode(), want)
		}
	}
	l.exits(t, 2, "preview", "configmaps", "-p", "policy.yaml", "--contexts", "us", "--save", "plans")
	l.are(t, "debug", "debug", "debug")

	// The second cluster refuses writes: the first is done, the third left as it is.
	down.Store(http.MethodPatch, true)
	l.stopsAtTheSecond(t)
	l.are(t, "info", "debug", "debug")
	l.exits(t, 2, "apply-existing", "--plan", "plans")

	// It goes on where it was, and to the third although the second still fails.
	l.exits(t, 3, "apply-existing", "--resume", "plans", "--yes")
	l.are(t, "info", "debug", "debug")
	l.exits(t, 3, "apply-existing", "--resume", "plans", "--yes", "--on-error", "continue")
	l.are(t, "info", "debug", "info")
	down.Clear()
	out, errOut := l.exits(t, 0, "apply-existing", "--resume", "plans", "--yes")
	if strings.Count(out+errOut, "There is nothing left to do.") != 2 {
		t.Errorf("got %s\n%s", out, errOut)
	}
	l.are(t, "info", "info", "info")

	// The last is undone first. What cannot be reached leaves the rest as it is.
	l.stop(t, "us")
	out, errOut = l.exits(t, 2, "undo", "plans", "--yes", "--request-timeout", "2s")
	if text := out + errOut; !strings.Contains(text, "Cluster 1 of 3: us") || !strings.Contains(text, "left as they are: eu/proxy, staging") {
		t.Errorf("got %s", text)
	}
	l.exits(t, 3, "undo", "plans", "--yes", "--on-error", "continue", "--request-timeout", "2s")
	l.names = l.names[:2]
	l.are(t, "debug", "debug")
}

// stopsAtTheSecond applies plans of which the second fails, and checks what the run and its reports say.
func (l *levels) stopsAtTheSecond(t *testing.T) {
	t.Helper()
	out, errOut := l.exits(t, 3, "apply-existing", "--plan", "plans", "-o", "json", "--report", "junit=junit.xml", "--report", "markdown=page.md", "--metrics", "metrics.prom")
	if !strings.Contains(errOut, "stopped after eu/proxy; clusters that were left as they are: us. To go on: ") || !strings.Contains(errOut, "apply-existing --resume plans") {
		t.Errorf("got %s", errOut)
	}
	r, found := readFleetReport(t, out), map[string]int{}
	for _, one := range r.Results {
		found[one.Object.Cluster+" "+one.Outcome]++
	}
	if diff := cmp.Diff(map[string]int{"staging applied": 3, "eu/proxy failed": 3}, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := fmt.Sprint(r.Clusters); !strings.Contains(got, "[{staging 3 3 0 } {eu/proxy 3 0 ") || !strings.Contains(got, "{us 0 0 1 left as it is}]") {
		t.Errorf("got %s", got)
	}
	for name, parts := range map[string][]string{
		"junit.xml":    {"ConfigMap shop/app-0 on staging", "ConfigMap shop/app-0 on eu/proxy", "left as they are: us"},
		"page.md":      {"shop/app-0 on staging", "shop/app-0 on eu/proxy", "left as they are: us"},
		"metrics.prom": {`kubectl_mutate_objects{cluster="staging",kind="ConfigMap",namespace="shop",result="changed"} 3`, `kubectl_mutate_writes{cluster="eu/proxy",`},
	} {
		text, err := os.ReadFile(filepath.Join(l.dir, name))
		check(t, err)
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q:\n%s", name, part, text)
			}
		}
	}
}

// apply-existing --contexts shows all clusters, asks once, and writes to one after the other.
func TestFleetAppliesLive(t *testing.T) {
	t.Parallel()
	l := startLevels(t)
	apply := func(want int, arguments ...string) (string, string) {
		t.Helper()
		return l.exits(t, want, append([]string{"apply-existing", "configmaps", "-p", "policy.yaml"}, arguments...)...)
	}
	// fresh is the directory of plans of the last run, of so many in all.
	var seen []string
	fresh := func(runs int) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(l.dir, ".local", "state", "kubectl-mutate", "*-fleet-*"))
		check(t, err)
		if len(found) != runs {
			t.Fatalf("%d directories of plans, want %d: %v", len(found), runs, found)
		}
		one := slices.DeleteFunc(found, func(dir string) bool { return slices.Contains(seen, dir) }) // names of one second are in no order
		seen = append(seen, one...)
		return strings.Join(one, "\n")
	}
	l.refuses(t, apply)
	if out, _ := apply(0, "--contexts", "us,staging", "--dry-run", "server"); !strings.Contains(out, "3 objects: 3 planned (server dry run).") {
		t.Errorf("got %s", out)
	}
	l.are(t, "debug", "debug", "debug")
	fresh(0)

	out, errOut := apply(3, "--contexts", "us,down,staging", "--yes", "--on-error", "continue", "-o", "json")
	r := readFleetReport(t, out)
	if got := fmt.Sprint(r.Clusters); len(r.Results) != 6 || !strings.HasPrefix(got, "[{us 3 3 0 } {down 0 0 1 the cluster was not evaluated when the plan was made: The connection to the server") || !strings.HasSuffix(got, "{staging 3 3 0 }]") {
		t.Errorf("got %+v\n%s", r, errOut)
	}
	l.are(t, "info", "debug", "info")
	dir := fresh(1)
	if !strings.Contains(errOut, "undo "+dir) {
		t.Errorf("the run does not say how it is undone:\n%s", errOut)
	}
	out, _ = l.exits(t, 0, "undo", dir, "--yes", "-o", "name")
	if strings.Count(out, "--context=us") != 3 || strings.Count(out, "--context=staging") != 3 {
		t.Errorf("got %s", out)
	}
	l.are(t, "debug", "debug", "debug")

	// One of them dies between the first and the second of its writes.
	var writes atomic.Int32
	l.through(t, "dying", "eu", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") == "" && writes.Add(1) == 2 {
			l.stop(t, "eu")
		}
		pass.ServeHTTP(w, r)
	})
	out, errOut = apply(3, "--contexts", "staging,dying,us", "--yes", "--concurrency", "1", "--request-timeout", "2s")
	if !strings.Contains(errOut, "stopped after dying; clusters that were left as they are: us. To go on: ") {
		t.Errorf("got %s\n%s", out, errOut)
	}
	l.names = []string{"staging", "us"}
	l.are(t, "info", "debug")
	out, errOut = l.exits(t, 3, "apply-existing", "--resume", fresh(2), "--yes", "--on-error", "continue", "--request-timeout", "2s")
	if !strings.Contains(out, "us") {
		t.Errorf("got %s\n%s", out, errOut)
	}
	l.are(t, "info", "info")
}

// refuses adds a context that is down, and checks that nothing is written before it is confirmed, nor where it is known that not all of it can be.
func (l *levels) refuses(t *testing.T, apply func(want int, arguments ...string) (string, string)) {
	t.Helper()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	check(t, free.Close())
	l.config.Clusters["down"] = &clientcmdapi.Cluster{Server: "https://" + free.Addr().String()}
	l.config.Contexts["down"] = &clientcmdapi.Context{Cluster: "down", AuthInfo: "us", Namespace: "shop"}
	// A directory of plans has a place for a cluster that was not read, which is named again.
	l.exits(t, 3, "preview", "configmaps", "-p", "policy.yaml", "--contexts", "down,us", "--save", "partly")
	out, errOut := l.exits(t, 3, "apply-existing", "--plan", "partly", "--dry-run", "server")
	contains(t, errOut, "Cluster 1 of 2: down", "error: down: the cluster was not evaluated when the plan was made: The connection to the server", "Cluster 2 of 2: us")
	contains(t, out, "3 objects: 3 planned (server dry run).")
	_, errOut = l.exits(t, 3, "plan", "show", "partly/001-down.plan")
	contains(t, errOut, "error: the cluster was not evaluated when the plan was made: The connection to the server")

	for _, test := range []struct {
		want      string
		arguments []string
	}{
		{"there is no terminal to ask on", []string{"--contexts", "us,staging"}},
		{"us: nothing was written: 3 objects are more than --max-changes 2", []string{"--contexts", "us,staging", "--yes", "--max-changes", "2"}},
		{"nothing was written: down was not evaluated", []string{"--contexts", "us,down", "--yes"}},
		{"none of the clusters was evaluated", []string{"--contexts", "down", "--yes"}},
		{"--journal names one file", []string{"--contexts", "us", "--yes", "--journal", "j"}},
		{"--watch is for one cluster", []string{"--contexts", "us", "--yes", "-w"}},
		{"--token is for one cluster", []string{"--contexts", "us", "--yes", "--token", "t"}},
	} {
		if _, errOut := apply(2, test.arguments...); !strings.Contains(errOut, test.want) {
			t.Errorf("%v: got %s", test.arguments, errOut)
		}
	}
}

// Two users of one cluster, which a kubeconfig does not tell from two clusters behind one proxy: each object is shown for both, with a
// note, and written once, also by a rule that appends.
func TestFleetOfTwoUsersOfOneCluster(t *testing.T) {
	f := fleetTest{startClusters(t, "one"), programOf(t)}
	f.create(t, "one", fleetObject("Namespace", "shop", nil))
	for _, name := range []string{"app-0", "app-1"} {
		f.create(t, "one", fleetObject("ConfigMap", name, map[string]any{"data": map[string]any{"level": "="}}))
	}
	f.config.AuthInfos["two"] = f.config.AuthInfos["one"].DeepCopy()
	f.config.Contexts["two"] = &clientcmdapi.Context{Cluster: "one", AuthInfo: "two", Namespace: "shop"}

	const note = "contexts one and two have the same server and different users: if they are one cluster, its objects come twice"
	out, errOut := f.preview(t, 1, "--contexts", "one,two", "-o", "json")
	if r := readFleetReport(t, out); len(r.Changes) != 4 || r.Summary.Changed != 4 || !strings.Contains(errOut, note) {
		t.Errorf("got %+v\n%s", r, errOut)
	}

	appends := strings.Replace(fleetPolicy, "{level: info}", `{level: "{{ request.object.data.level }}x"}`, 1)
	check(t, os.WriteFile(filepath.Join(f.dir, "append.yaml"), []byte(appends), 0o600))
	code, out, errOut := f.run(t, f.program, "apply-existing", "configmaps", "-p", "append.yaml", "--contexts", "one,two", "--yes", "-o", "json")
	found := map[string]int{}
	for _, one := range readFleetReport(t, out).Results {
		found[one.Object.Cluster+" "+one.Outcome]++
	}
	if code != 3 || len(found) != 2 || found["one applied"] != 2 || found["two drifted"] != 2 || !strings.Contains(errOut, note) {
		t.Errorf("exit code %d, %v\n%s", code, found, errOut)
	}
	for _, name := range []string{"app-0", "app-1"} {
		if got := f.level(t, "one", name); got != "=x" {
			t.Errorf("level of %s is %q: it is written more than once", name, got)
		}
	}
}
