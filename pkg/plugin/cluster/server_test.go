package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/transport"
)

// fakeServer answers discovery for a few resources and everything else by a table.
type fakeServer struct {
	*httptest.Server
	answers map[string]answer // by "METHOD /path?query"
	most    int64             // bytes that an answer may have; 0 for no other limit than the usual one
	// instead, if set, may answer a request that is not for discovery in its place.
	instead func(w http.ResponseWriter, r *http.Request) bool

	discoveries atomic.Int64

	mu       sync.Mutex
	requests []string // all but discovery
}

type answer struct {
	code int // 0 stands for 200
	body string
}

func newServer(t *testing.T, answers map[string]answer) *fakeServer {
	t.Helper()
	s := &fakeServer{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if body, ok := discoveryAnswers()[r.URL.Path]; ok {
		s.discoveries.Add(1)
		fmt.Fprint(w, body)
		return
	}
	if s.instead != nil && s.instead(w, r) {
		return
	}
	request := r.Method + " " + r.URL.RequestURI()
	s.mu.Lock()
	s.requests = append(s.requests, request)
	a, ok := s.answers[request]
	s.mu.Unlock()
	if !ok {
		a = status(http.StatusNotFound, "NotFound", "")
	}
	if a.code != 0 {
		w.WriteHeader(a.code)
	}
	fmt.Fprint(w, a.body)
}

func (s *fakeServer) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.requests...)
}

func discoveryAnswers() map[string]string {
	const configMaps = `{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["get","list","watch"]}`
	const secrets = `{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["get","list"]}`
	const namespaces = `{"name":"namespaces","kind":"Namespace","verbs":["get","list"]}`
	policies := func(version string) string {
		return `{"kind":"APIResourceList","groupVersion":"kyverno.io/` + version + `","resources":[
			{"name":"clusterpolicies","kind":"ClusterPolicy","verbs":["get","list","watch"]},{"name":"clusterpolicies/status","kind":"ClusterPolicy","verbs":["get"]}]}`
	}
	return map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","groups":[{"name":"kyverno.io","preferredVersion":{"groupVersion":"kyverno.io/v1","version":"v1"},
			"versions":[{"groupVersion":"kyverno.io/v2beta1","version":"v2beta1"},{"groupVersion":"kyverno.io/v1","version":"v1"}]}]}`,
		"/api/v1":                  `{"kind":"APIResourceList","groupVersion":"v1","resources":[` + configMaps + "," + secrets + "," + namespaces + `]}`,
		"/apis/kyverno.io/v1":      policies("v1"),
		"/apis/kyverno.io/v2beta1": policies("v2beta1"),
	}
}

// status is an error answer; token is what a 410 offers for going on.
func status(code int, reason, token string) answer {
	return answer{code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"metadata":{"continue":%q}}`, reason, code, token)}
}

// page is a list of ConfigMaps named by their UIDs.
func page(token string, names ...string) answer {
	items := make([]string, 0, len(names))
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop","uid":%q}}`, name, "uid-"+name))
	}
	return answer{body: fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, token, strings.Join(items, ","))}
}

func (s *fakeServer) client(t *testing.T, o cluster.Options) *cluster.Client {
	t.Helper()
	return s.cached(t, t.TempDir(), o)
}

// cached is a client whose cache of discovery is in a directory.
func (s *fakeServer) cached(t *testing.T, cache string, o cluster.Options) *cluster.Client {
	t.Helper()
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "here",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": s.URL}}},
		"users":    []any{map[string]any{"name": "me", "user": map[string]any{}}},
		"contexts": []any{map[string]any{"name": "here", "context": map[string]any{"cluster": "c", "user": "me"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		if s.most > 0 {
			c.Wrap(transport.Bounded(s.most, ""))
		}
		return cluster.Wrap(c)
	})
	flags.KubeConfig, flags.CacheDir = &path, &cache
	client, err := cluster.New(flags, o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
