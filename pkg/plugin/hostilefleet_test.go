package plugin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// twoClusters are a server that is well behaved and one that is not, each with a user of its own.
type twoClusters struct {
	*testing.T
	dir       string
	good, bad *apiServer
	tokens    map[string]string // what each server was sent that it should not be
}

func newTwoClusters(t *testing.T) *twoClusters {
	t.Helper()
	x := &twoClusters{T: t, dir: t.TempDir(), good: &apiServer{}, bad: &apiServer{}, tokens: map[string]string{}}
	var users, clusters, contexts []string
	for name, s := range map[string]*apiServer{"good": x.good, "bad": x.bad} {
		s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); got != "Bearer hidden-"+name {
				s.mu.Lock()
				x.tokens[name] = got
				s.mu.Unlock()
			}
			s.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		users = append(users, fmt.Sprintf("{name: %s, user: {token: hidden-%s}}", name, name))
		clusters = append(clusters, fmt.Sprintf("{name: %s, cluster: {server: %q, insecure-skip-tls-verify: true}}", name, s.URL))
		contexts = append(contexts, fmt.Sprintf("{name: %s, context: {cluster: %s, user: %s}}", name, name, name))
	}
	t.Setenv("HOME", x.dir)
	t.Setenv("XDG_STATE_HOME", x.dir)
	t.Setenv("KUBECONFIG", write(t, x.dir, "kubeconfig", fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: good, users: [%s], clusters: [%s], contexts: [%s]}",
		strings.Join(users, ", "), strings.Join(clusters, ", "), strings.Join(contexts, ", "))))
	write(t, x.dir, "policy.yaml", labelPolicy)
	return x
}

// run runs a command, and returns what it says of the cluster that is well behaved, and all of it.
func (x *twoClusters) run(args ...string) (code int, good []any, text string) {
	x.Helper()
	x.Setenv("KUBECACHEDIR", x.TempDir())
	x.good.patched, x.bad.patched = false, false
	defer klog.CaptureState().Restore()
	klog.SetLogger(logr.Discard()) // as Main does
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	code = plugin.Run(x.Context(), plugin.NewCommand("kubectl mutate", streams), append(args, "-o", "json"), streams)
	var report map[string]any
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		x.Fatalf("%q: exit code %d, %v\n%.2000s\n%.2000s", args, code, err, out.String(), errOut.String())
	}
	for _, list := range []string{"clusters", "changes", "differences", "results", "policies"} {
		items, _ := report[list].([]any)
		for _, item := range items {
			row, _ := item.(map[string]any)
			object, _ := row["object"].(map[string]any)
			several, _ := row["clusters"].([]any)
			delete(row, "clusters")
			if row["name"] == "good" || object["cluster"] == "good" || slices.Contains(several, any("good")) {
				good = append(good, item)
			}
		}
	}
	return code, good, out.String() + errOut.String()
}

// hostileClusters are answers of a cluster that a fleet has as well; each may leave a request to the usual one.
func hostileClusters(away string) map[string]func(http.ResponseWriter, *http.Request) bool {
	listing := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/configmaps") }
	page := 0
	return map[string]func(http.ResponseWriter, *http.Request) bool{
		"a listing without an end": func(w http.ResponseWriter, r *http.Request) bool {
			if page++; listing(r) {
				fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"continue": "page-%d"}, "items": [%s]}`, page, liveConfigMap)
			}
			return listing(r)
		},
		"a listing of nothing without an end": func(w http.ResponseWriter, r *http.Request) bool {
			if page++; listing(r) {
				fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"continue": "page-%d"}, "items": []}`, page)
			}
			return listing(r)
		},
		"a listing that leads elsewhere": func(w http.ResponseWriter, r *http.Request) bool {
			if listing(r) {
				http.Redirect(w, r, away+r.URL.Path, http.StatusTemporaryRedirect)
			}
			return listing(r)
		},
		"everything leads elsewhere": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, away+r.URL.Path, http.StatusPermanentRedirect)
			return true
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, "\x1b[31m\x00\xff<html>")
			return true
		},
		"garbage in a listing": func(w http.ResponseWriter, r *http.Request) bool {
			if listing(r) {
				_, _ = io.WriteString(w, `{"items": [{"metadata": {"name": "../../x", "cluster": "good"}}, 7]}`)
			}
			return listing(r)
		},
		"errors of 5 MB": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "%s"}`, strings.Repeat(`good: \u001b[31m\n`, 5<<20/16))
			return true
		},
		"no answer": func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second): // longer than the command waits
			}
			return true
		},
	}
}

// TestOneHostileClusterOfSeveral has one of two clusters misbehave in each way: what is said and done of the other is as if it were
// alone, and its token stays with it.
func TestOneHostileClusterOfSeveral(t *testing.T) {
	tier.NotShort(t)
	x := newTwoClusters(t)
	away, connections := connectionCounter(t)
	policy := filepath.Join(x.dir, "policy.yaml")
	for what, answer := range hostileClusters(away) {
		for _, args := range [][]string{
			{"preview", "-p", policy},
			{"compare", "-p", policy, "--with", policy},
			{"policies", "--from-cluster"},
			{"apply-existing", "-p", policy, "--yes", "--annotate=false", "--on-error=continue"},
		} {
			x.bad.hostile = nil
			usual, want, _ := x.run(append(slices.Clone(args), "--contexts=good")...)
			x.bad.hostile = answer
			code, got, text := x.run(append(slices.Clone(args), "--contexts=bad,good", "--request-timeout=1s")...)
			spoiled := args[0] != "policies" || !strings.Contains(what, "listing") // of ConfigMaps
			if spoiled && code != plugin.ExitIncomplete || usual > plugin.ExitChanges {
				t.Errorf("%s: %s: exit code %d, alone %d\n%.2000s", what, args[0], code, usual, text)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("%s: %s of the other cluster (-alone +beside it):\n%s", what, args[0], diff)
			}
			if x.good.patched != (args[0] == "apply-existing") {
				t.Errorf("%s: %s: written: %v", what, args[0], x.good.patched)
			}
			if len(text) > 100_000 || strings.ContainsAny(text, "\x1b\x00") || strings.Contains(text, "hidden") {
				t.Errorf("%s: %s: %d bytes are shown: %.2000q", what, args[0], len(text), text)
			}
		}
	}
	if n := connections.Load(); n != 0 || len(x.tokens) > 0 {
		t.Errorf("%d connections to another server; sent to others: %q", n, x.tokens)
	}
}
