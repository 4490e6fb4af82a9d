package cluster_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// kindServer is an API server that has one kind, or a proxy that leads to it.
func kindServer(t *testing.T, start func(http.Handler) *httptest.Server, kind func(*http.Request) string) *httptest.Server {
	t.Helper()
	s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]string{
			"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis":   `{"kind":"APIGroupList","groups":[]}`,
			"/api/v1": fmt.Sprintf(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"things","kind":%q,"verbs":["list"]}]}`, kind(r)),
		}
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := answers[r.URL.Path]; ok {
			fmt.Fprint(w, answer)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Clusters at one address that a proxy tells apart do not share what is cached of their kinds.
func TestClustersOfOneAddressHaveCachesOfTheirOwn(t *testing.T) {
	byUser := kindServer(t, httptest.NewTLSServer, func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") })
	east := kindServer(t, httptest.NewServer, func(*http.Request) string { return "East" })
	west := kindServer(t, httptest.NewServer, func(*http.Request) string { return "West" })
	alone := kindServer(t, httptest.NewServer, func(*http.Request) string { return "Alone" })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: users, cluster: {server: %q, insecure-skip-tls-verify: true}}, {name: alone, cluster: {server: %q}},
  {name: east, cluster: {server: "http://api.example", proxy-url: %q}}, {name: west, cluster: {server: "http://api.example", proxy-url: %q}}],
 users: [{name: Ann, user: {token: Ann}}, {name: Bob, user: {token: Bob}}],
 contexts: [{name: Ann, context: {cluster: users, user: Ann}}, {name: Bob, context: {cluster: users, user: Bob}}, {name: Alone, context: {cluster: alone, user: Ann}},
  {name: East, context: {cluster: east, user: Ann}}, {name: West, context: {cluster: west, user: Ann}}]}`, byUser.URL, alone.URL, east.URL, west.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	all := []string{"Ann", "Bob", "Alone", "East", "West"}
	for range 2 { // the second time from the caches
		for _, context := range all {
			flags, cache := genericclioptions.NewConfigFlags(true), dir
			flags.KubeConfig, flags.Context, flags.CacheDir = &kubeconfig, &context, &cache
			client, err := cluster.New(flags, cluster.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range all {
				if _, err := client.Mapper().RESTMapping(schema.GroupKind{Kind: kind}, "v1"); (err == nil) != (kind == context) {
					t.Errorf("context %s, kind %s: %v", context, kind, err)
				}
			}
		}
	}
	// What no other shares stays in kubectl's own.
	var kept []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d.Name() == "serverresources.json" && !strings.Contains(path, "kubectl-mutate") {
			kept = append(kept, strings.Split(strings.TrimPrefix(path, dir), string(filepath.Separator))[2])
		}
		return err
	})
	slices.Sort(kept)
	if diff := cmp.Diff([]string{strings.NewReplacer("http://", "", ":", "_").Replace(alone.URL)}, kept); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
