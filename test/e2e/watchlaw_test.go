package e2e

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// The objects of a run of TestWatchConverges.
const (
	lawApps     = 12 // each changed by a rule of its own
	lawSettings = 2  // triggers
	lawTargets  = 4  // of each
	lawActions  = 40
)

// lawPolicy is the policy in one of its versions.
func lawPolicy(version int) string {
	return fmt.Sprintf(`
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: law}, spec: {rules: [
  {name: own, match: {any: [{resources: {kinds: [ConfigMap], names: ["app-*"]}}]}, mutate: {patchStrategicMerge: {data: {level: "v%[1]d"}}}},
  {name: asks, match: {any: [{resources: {kinds: [ConfigMap], names: ["app-*"]}}]},
    context: [{name: asked, apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}/configmaps/asked", jmesPath: data.v}}],
    mutate: {patchStrategicMerge: {data: {asked: "{{ asked }}"}}}},
  {name: others, match: {any: [{resources: {kinds: [ConfigMap], names: ["settings-*"]}}]}, mutate: {
    mutateExistingOnPolicyUpdate: true, targets: [{apiVersion: v1, kind: ConfigMap, namespace: "{{ request.namespace }}", name: "target-{{ request.object.metadata.name }}-*"}],
    patchStrategicMerge: {metadata: {labels: {from: "{{ request.object.data.v }}-%[1]d"}}}}}]}}
`, version)
}

// TestWatchConverges is the law of a watch that writes: whatever happens meanwhile, a while after the last event every
// object that a fresh preview would change is named as refused.
//
// Each run makes random changes through a server that fails: others edit, delete and make objects, also between the
// evaluation of one and its write; writes are refused, by the server and by what stands before it, fail for a while, or
// are lost; what a rule asks is away; the policies change; the watch is killed and begins again. A failure names a seed, which -seed replays.
func TestWatchConverges(t *testing.T) {
	t.Parallel()
	var total lawFigures
	seeds := tier.Pick(4, 50)
	t.Run("seed", func(t *testing.T) {
		for n := range max(seeds, int(*onlySeed)) {
			seed := uint64(n + 1)
			if *onlySeed != 0 && *onlySeed != seed {
				continue
			}
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				startLaw(t, seed, &total).run()
			})
		}
	})
	t.Log(total.String())
}

// lawFigures count what happened.
type lawFigures struct{ objects, edits, overtaken, refused, failed, lost, policies, kills, named atomic.Int64 }

func (f *lawFigures) String() string {
	return fmt.Sprintf("%d objects, %d edits, %d overtaken writes, %d refusals, %d failed writes, %d lost connections, %d changes of policies, %d kills; %d named as refused in the end",
		f.objects.Load(), f.edits.Load(), f.overtaken.Load(), f.refused.Load(), f.failed.Load(), f.lost.Load(), f.policies.Load(), f.kills.Load(), f.named.Load())
}

// law is one run.
type law struct {
	*lawFigures
	t         *testing.T
	random    *rand.Rand
	objects   dynamic.ResourceInterface
	dir       string
	program   string
	config    string // through the proxy
	direct    string
	namespace string
	version   int
	starts    int
	cmd       *exec.Cmd
	ended     chan struct{}

	mu      sync.Mutex
	chance  *rand.Rand // of the proxy
	refuses string     // the object whose writes are refused
	faulty  bool
	away    atomic.Bool
	silent  atomic.Bool // what a rule asks
}

func startLaw(t *testing.T, seed uint64, total *lawFigures) *law {
	t.Helper()
	l := &law{lawFigures: total, t: t, random: rand.New(rand.NewPCG(seed, 1)), chance: rand.New(rand.NewPCG(seed, 2)), dir: t.TempDir(), namespace: newNamespace(t), faulty: true, program: programOf(t)}
	client, err := dynamic.NewForConfig(restConfig(t))
	check(t, err)
	l.objects = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(l.namespace)
	l.direct, l.config = filepath.Join(l.dir, "direct"), filepath.Join(l.dir, "proxied")
	kubeconfig := server.as("", l.namespace)
	check(t, clientcmd.WriteToFile(*kubeconfig, l.direct))
	for _, c := range kubeconfig.Clusters {
		c.Server, c.CertificateAuthorityData = l.proxy(restConfig(t)), nil
	}
	check(t, clientcmd.WriteToFile(*kubeconfig, l.config))
	l.create("asked", false)
	for i := range lawApps {
		l.create(fmt.Sprintf("app-%d", i), i < 2)
	}
	for i := range lawSettings {
		l.create(fmt.Sprintf("settings-%d", i), false)
		for j := range lawTargets {
			l.create(fmt.Sprintf("target-settings-%d-%d", i, j), false)
		}
	}
	l.policy()
	return l
}

// proxy passes requests on, or not.
func (l *law) proxy(config *rest.Config) string {
	target, err := url.Parse(config.Host)
	check(l.t, err)
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.Transport, err = rest.TransportFor(config)
	check(l.t, err)
	pass.ErrorLog = log.New(io.Discard, "", 0) // it is meant to break
	pass.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { abort() }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.away.Load() {
			l.lost.Add(1)
			abort()
		}
		name := path.Base(r.URL.Path)
		if name == "asked" && l.silent.Load() {
			refuse(w, apierrors.NewInternalError(fmt.Errorf("the service is away")))
			return
		}
		if r.Method != http.MethodPatch {
			pass.ServeHTTP(w, r)
			return
		}
		l.mu.Lock()
		refuses, luck := l.refuses == name, l.chance.IntN(100)
		if !l.faulty {
			luck = 100
		}
		l.mu.Unlock()
		switch writes := !r.URL.Query().Has("dryRun"); {
		case refuses:
			l.refused.Add(1)
			refuse(w, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, name, fmt.Errorf("it is locked")))
		case luck < 8:
			l.failed.Add(1)
			refuse(w, apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "w": connection refused`)))
		case writes && luck < 30: // somebody is faster
			l.overtaken.Add(1)
			l.edit(r.Context(), name, fmt.Sprintf(`{"data":{"level":"x%d","other":"%d"}}`, luck, luck))
			pass.ServeHTTP(w, r)
		case writes && luck < 36:
			l.lost.Add(1)
			pass.ServeHTTP(&discarded{header: http.Header{}}, r)
			abort()
		default:
			pass.ServeHTTP(w, r)
		}
	}))
	l.t.Cleanup(s.Close)
	l.t.Cleanup(s.CloseClientConnections)
	return s.URL
}

// refuse answers a request with an error.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":%d}`, err.ErrStatus.Message, err.ErrStatus.Reason, err.ErrStatus.Code)
}

// create makes an object, perhaps one that nobody may change.
func (l *law) create(name string, immutable bool) {
	l.lawFigures.objects.Add(1)
	u := fleetObject("ConfigMap", name, map[string]any{"data": map[string]any{"v": "0"}, "immutable": immutable})
	u.SetNamespace(l.namespace)
	if _, err := l.objects.Create(context.Background(), u, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		l.t.Error(err)
	}
}

// edit is what somebody else does to an object, which may be gone.
func (l *law) edit(ctx context.Context, name, patch string) {
	l.edits.Add(1)
	_, err := l.objects.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) && ctx.Err() == nil {
		l.t.Error(err)
	}
}

// policy writes the next version of the policy.
func (l *law) policy() {
	l.version++
	check(l.t, os.WriteFile(filepath.Join(l.dir, "policy.yaml"), []byte(lawPolicy(l.version)), 0o600))
}

func (l *law) run() {
	l.start()
	for range lawActions {
		l.act()
		time.Sleep(time.Duration(l.random.IntN(300)) * time.Millisecond)
	}
	l.mu.Lock()
	l.faulty = false
	l.mu.Unlock()
	l.away.Store(false)
	l.silent.Store(false)
	var last string
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		if last = l.left(); last == "" {
			break
		}
		if time.Now().After(end) {
			l.t.Fatalf("%s\n%s", last, l.said())
		}
	}
	check(l.t, l.cmd.Process.Signal(syscall.SIGTERM))
	<-l.ended // the code says whether something was told
	if runs, err := exec.Command(l.cmd.Path, "--kubeconfig", l.direct, "history").CombinedOutput(); err != nil {
		l.t.Errorf("history: %v\n%s", err, runs)
	}
}

// act does something that may happen to a cluster.
func (l *law) act() {
	ctx, r := context.Background(), l.random
	app := fmt.Sprintf("app-%d", 2+r.IntN(lawApps-2))
	switch n := r.IntN(100); {
	case n < 30:
		l.edit(ctx, app, fmt.Sprintf(`{"data":{"level":"y%d"}}`, n))
	case n < 50:
		l.edit(ctx, fmt.Sprintf("settings-%d", r.IntN(lawSettings)), fmt.Sprintf(`{"data":{"v":"%d"}}`, r.IntN(1000)))
	case n < 60:
		l.edit(ctx, fmt.Sprintf("target-settings-%d-%d", r.IntN(lawSettings), r.IntN(lawTargets)), fmt.Sprintf(`{"metadata":{"labels":{"from":"nobody"}},"data":{"other":"%d"}}`, n))
	case n < 70:
		if err := l.objects.Delete(ctx, app, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			l.t.Error(err)
		}
		l.create(app, false)
	case n < 80:
		l.mu.Lock()
		l.refuses = []string{"", app, fmt.Sprintf("target-settings-%d-0", r.IntN(lawSettings))}[r.IntN(3)]
		l.mu.Unlock()
	case n < 88:
		l.policies.Add(1)
		l.policy()
	case n < 91:
		l.silent.Store(!l.silent.Load())
	case n < 95:
		l.away.Store(true)
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		l.away.Store(false)
	default:
		l.kills.Add(1)
		_ = l.cmd.Process.Kill()
		<-l.ended
		l.start()
	}
}

// start starts the watch.
func (l *law) start() {
	l.t.Helper()
	l.starts++
	out, err := os.Create(l.output())
	check(l.t, err)
	l.cmd = exec.Command(l.program, "apply-existing", "-p", "policy.yaml", "--watch", "--yes", "--metrics-listen=127.0.0.1:0", "--kubeconfig", l.config)
	l.cmd.Dir, l.cmd.Stdout, l.cmd.Stderr = l.dir, out, out
	l.cmd.Env = append(os.Environ(), "HOME="+l.dir, "XDG_STATE_HOME="+l.dir)
	check(l.t, l.cmd.Start())
	cmd, ended := l.cmd, make(chan struct{})
	l.ended = ended
	go func() {
		_ = cmd.Wait() // it is started again
		close(ended)
	}()
	l.t.Cleanup(func() { _ = cmd.Process.Kill() })
}

func (l *law) output() string { return filepath.Join(l.dir, fmt.Sprintf("out-%d", l.starts)) }

func (l *law) said() string {
	text, _ := os.ReadFile(l.output())
	return string(text)
}

// lawName matches an object in a list of names.
var lawName = regexp.MustCompile(`(?:app|target-settings)-[0-9-]*[0-9]`)

// left says what keeps the run from having converged; "" if it has.
func (l *law) left() string {
	l.t.Helper()
	select {
	case <-l.ended: // the server was away when it began
		l.kills.Add(1)
		l.start()
		return "it begins again"
	default:
	}
	at := metricsAt.FindStringSubmatch(l.said())
	if at == nil {
		return "it serves no metrics yet"
	}
	r, err := http.Get(at[1] + "/readyz")
	if err != nil {
		return err.Error()
	}
	ready, _ := io.ReadAll(r.Body)
	_ = r.Body.Close() // it was read
	if r.StatusCode != http.StatusOK {
		return string(ready)
	}
	preview := exec.Command(l.cmd.Path, "preview", "-p", "policy.yaml", "-o", "name", "--kubeconfig", l.direct, "-q")
	preview.Dir, preview.Env = l.dir, l.cmd.Env
	changes, err := preview.Output()
	if code := preview.ProcessState.ExitCode(); code > 1 {
		return fmt.Sprintf("preview: %v: %s", err, changes)
	}
	named := lawName.FindAllString(string(ready), -1)
	for _, name := range lawName.FindAllString(string(changes), -1) {
		if !strings.Contains(" "+strings.Join(named, " ")+" ", " "+name+" ") {
			return fmt.Sprintf("preview would change %s, and /readyz says %s", name, ready)
		}
	}
	l.named.Add(int64(len(named)))
	return ""
}
