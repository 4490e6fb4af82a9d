package e2e

import (
	"context"
	"fmt"
	"io"
	"log"
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
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-mutate/kubectl-mutate/test/e2e/internal/controlplane"
)

// The changes of TestWatchMissesNothing.
const (
	watchedCreated = 500
	watchedUpdated = 250 // the first of them, later; the others are deleted
)

const watchedPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: watched
spec:
  rules:
    - name: copy
      match: {any: [{resources: {kinds: [ConfigMap], names: ["object-*"]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {copy: "{{ request.object.data.v }}"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: watched-deletions
spec:
  mutateExistingOnPolicyUpdate: true
  rules:
    - name: tombstone
      match: {any: [{resources: {kinds: [ConfigMap], names: ["object-*"], operations: [DELETE]}}]}
      mutate:
        targets: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: "tomb-{{ request.object.data.v }}"}]
        patchStrategicMerge: {metadata: {labels: {deleted: "yes"}}}
`

// cutter is a proxy that counts writes, and cuts each watch after a moment.
type cutter struct {
	*httptest.Server
	mu     sync.Mutex
	writes map[string]int // by name of the object
	cuts   int
}

func newCutter(t *testing.T, config *rest.Config) *cutter {
	t.Helper()
	target, err := url.Parse(config.Host)
	check(t, err)
	transport, err := rest.TransportFor(config)
	check(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0) // it is meant to break
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	c := &cutter{writes: map[string]int{}}
	proxy.ModifyResponse = func(r *http.Response) error {
		if q := r.Request; q.Method == http.MethodPatch && !q.URL.Query().Has("dryRun") && r.StatusCode == http.StatusOK {
			c.mu.Lock()
			c.writes[path.Base(q.URL.Path)]++
			c.mu.Unlock()
		}
		return nil
	}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			c.mu.Lock()
			c.cuts++
			after := time.Duration(500+c.cuts%7*300) * time.Millisecond
			c.mu.Unlock()
			ctx, cancel := context.WithTimeout(r.Context(), after)
			defer cancel()
			r = r.WithContext(ctx)
			defer panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

// TestWatchMissesNothing makes 1,000 changes while each watch is cut after a moment, and the API server is killed
// and restarted in between: each is noticed, and none is made twice.
func TestWatchMissesNothing(t *testing.T) {
	t.Parallel()
	assets, err := controlplane.Locate(t.Context(), os.Stderr)
	check(t, err)
	plane, err := controlplane.Start(t.Context(), assets)
	check(t, err)
	t.Cleanup(func() { check(t, plane.Stop()) })
	config, err := clientcmd.NewDefaultClientConfig(*plane.Config(), nil).ClientConfig()
	check(t, err)
	config.QPS = -1
	admin, err := dynamic.NewForConfig(config)
	check(t, err)
	objects := admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	c := newCutter(t, config)

	cmd, ended, said := startWatching(t, plane.Config(), c.URL)
	create := func(name, value string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"v": value}}}
		_, err := objects.Create(t.Context(), u, metav1.CreateOptions{})
		check(t, err)
	}
	for i := watchedUpdated; i < watchedCreated; i++ {
		create(fmt.Sprintf("tomb-%d", i), "")
	}
	for i := range watchedCreated {
		create(fmt.Sprintf("object-%d", i), fmt.Sprint(i))
		if i == watchedCreated/2 {
			check(t, plane.Restart(t.Context()))
		}
	}
	for i := watchedUpdated; i <= watchedUpdated+10; i++ { // what comes and goes while the server is away, nobody notices
		created := fmt.Sprintf("== CREATE ConfigMap default/object-%d ", i)
		eventually(t, said, func() bool { return strings.Contains(said(), created) })
	}
	for i := range watchedCreated {
		name := fmt.Sprintf("object-%d", i)
		if i < watchedUpdated {
			_, err = objects.Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"data":{"v":"new-%d"}}`, i), metav1.PatchOptions{})
		} else {
			err = objects.Delete(t.Context(), name, metav1.DeleteOptions{})
		}
		check(t, err)
		if i == watchedUpdated+10 {
			check(t, plane.Restart(t.Context()))
		}
	}
	var missed []string
	eventually(t, func() string { return fmt.Sprintf("missed %v\n%s", missed, said()) }, func() bool {
		missed = nil
		list, err := objects.List(t.Context(), metav1.ListOptions{})
		check(t, err)
		for i := range list.Items {
			u := &list.Items[i]
			value, _, _ := unstructured.NestedString(u.Object, "data", "v")
			if strings.HasPrefix(u.GetName(), "object-") && u.GetLabels()["copy"] != value || strings.HasPrefix(u.GetName(), "tomb-") && u.GetLabels()["deleted"] != "yes" {
				missed = append(missed, u.GetName())
			}
		}
		return len(missed) == 0
	})
	check(t, cmd.Process.Signal(syscall.SIGTERM))
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != 0 && !strings.Contains(said(), "trying again") {
		t.Errorf("exit code %d:\n%s", code, said())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for name, n := range c.writes {
		total += n
		if most := map[bool]int{true: 1, false: 2}[strings.HasPrefix(name, "tomb-")]; n > most {
			t.Errorf("%s was written %d times", name, n)
		}
	}
	if c.cuts < 10 {
		t.Errorf("%d watches were cut", c.cuts)
	}
	t.Logf("%d writes, %d watches were cut", total, c.cuts)
}

// startWatching starts apply-existing with --watch, for a cluster at another URL. It returns what closes when that has ended, and what says
// what it has printed so far.
func startWatching(t *testing.T, through *clientcmdapi.Config, url string) (cmd *exec.Cmd, ended chan struct{}, said func() string) {
	t.Helper()
	dir := t.TempDir()
	check(t, buildPlugin(dir))
	for _, cluster := range through.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = url, nil
	}
	kubeconfig, policy, out := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "out")
	check(t, clientcmd.WriteToFile(*through, kubeconfig))
	check(t, os.WriteFile(policy, []byte(watchedPolicy), 0o600))
	output, err := os.Create(out)
	check(t, err)
	cmd = exec.Command(filepath.Join(dir, "kubectl-mutate"), "apply-existing", "-p", policy, "--watch", "--yes")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	cmd.Stdout, cmd.Stderr = output, output
	check(t, cmd.Start())
	ended = make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said = func() string { text, _ := os.ReadFile(out); return string(text) }
	eventually(t, said, func() bool { return strings.Contains(said(), "Watching ") })
	return cmd, ended, said
}

// eventually waits until something is so.
func eventually(t *testing.T, why func() string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(why())
		}
	}
}
