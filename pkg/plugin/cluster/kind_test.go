package cluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// What kubectl has cached of another cluster at the same address may say that ConfigMaps are where this one has its Secrets, or its
// Namespaces. Neither is then a ConfigMap.
func TestKindsOfAnotherCluster(t *testing.T) {
	const secret = `{"metadata":{"name":"token","namespace":"shop","uid":"s"},"data":{"password":"aHVudGVyMg=="}}`
	s := newServer(t, map[string]answer{
		configMaps + "limit=500":           page("", "a"),
		"GET /api/v1/secrets?limit=500":    {body: `{"kind":"SecretList","apiVersion":"v1","items":[` + secret + `]}`},
		"GET /api/v1/namespaces?limit=500": {body: `{"kind":"NamespaceList","apiVersion":"v1","items":[{"metadata":{"name":"shop","uid":"n"}}]}`},
	})
	for resource, want := range map[string]map[string]string{ // of the first run, by the kind that is asked for
		"secrets":    {"ConfigMap": "ConfigMap a", "Secret": "Secret token"},
		"namespaces": {"ConfigMap": "namespaces: the server answers a request for v1 ConfigMapList with v1 NamespaceList: the server does not have them there any more; its kinds were cached and are read again: run again"},
	} {
		t.Run(resource, func(t *testing.T) {
			others := true
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1" || !others {
					s.serve(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":%q,"kind":"ConfigMap","namespaced":true,"verbs":["get","list"]}]}`, resource)
			})
			for kind, want := range want {
				cache := t.TempDir()
				others = true
				_, _ = s.cached(t, cache, cluster.Options{}).Mapping(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) // caches it
				others = false
				if got := listed(t, s.cached(t, cache, cluster.Options{}), kind); got != want {
					t.Errorf("%s: got %s", kind, got)
				}
				if got, want := listed(t, s.cached(t, cache, cluster.Options{}), "ConfigMap"), "ConfigMap a"; kind == "ConfigMap" && got != want {
					t.Errorf("then: got %s", got)
				}
			}
		})
	}
}

// listed is what a source has of a kind: kinds and names of the objects, or an error.
func listed(t *testing.T, client *cluster.Client, kind string) string {
	t.Helper()
	var out []string
	for page, err := range client.Source(engine.Scope{}, cluster.SourceOptions{}).Pages(t.Context(), []engine.Selection{{Kind: kind}}) {
		if err != nil {
			return err.Error()
		}
		for i := range page.Len() {
			target, err := page.Target(i)
			if err != nil {
				return err.Error()
			}
			out = append(out, target.Object.GetKind()+" "+target.Key.Name)
		}
	}
	return strings.Join(out, ", ")
}

// A listing has objects of the kind that was asked for, and of no other.
func TestListingOfAnotherKind(t *testing.T) {
	const item = `"metadata":{"name":"a","uid":"u"}`
	for name, c := range map[string]struct {
		kind, path, body, err string
	}{
		"items without a type": {"ConfigMap", "/api/v1/configmaps", `{"kind":"ConfigMapList","apiVersion":"v1","items":[{` + item + `}]}`, ""},
		"items with a type":    {"ConfigMap", "/api/v1/configmaps", `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"apiVersion":"v1","kind":"ConfigMap",` + item + `}]}`, ""},
		"another list":         {"ConfigMap", "/api/v1/configmaps", `{"kind":"SecretList","apiVersion":"v1","items":[{` + item + `}]}`, "v1 ConfigMapList with v1 SecretList"},
		"another empty list":   {"ConfigMap", "/api/v1/configmaps", `{"kind":"SecretList","apiVersion":"v1","items":[]}`, "v1 ConfigMapList with v1 SecretList"},
		"a type at the end":    {"ConfigMap", "/api/v1/configmaps", `{"items":[{` + item + `}],"kind":"SecretList"}`, "with SecretList"},
		"another item":         {"ConfigMap", "/api/v1/configmaps", `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Secret",` + item + `}]}`, "v1 ConfigMap with v1 Secret"},
		"another version":      {"ConfigMap", "/api/v1/configmaps", `{"kind":"ConfigMapList","apiVersion":"v2","items":[]}`, "with v2 ConfigMapList"},
		"a list with a name of its own": {
			"ClusterPolicy", "/apis/kyverno.io/v1/clusterpolicies", `{"kind":"Policies","apiVersion":"kyverno.io/v1","items":[{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy",` + item + `}]}`, "",
		},
		"an empty one":         {"ClusterPolicy", "/apis/kyverno.io/v1/clusterpolicies", `{"kind":"Policies","apiVersion":"kyverno.io/v1","items":[]}`, ""},
		"one of another item":  {"ClusterPolicy", "/apis/kyverno.io/v1/clusterpolicies", `{"kind":"Policies","apiVersion":"kyverno.io/v1","items":[{"apiVersion":"v1","kind":"Secret",` + item + `}]}`, "with v1 Secret"},
		"one of untyped items": {"ClusterPolicy", "/apis/kyverno.io/v1/clusterpolicies", `{"kind":"SecretList","apiVersion":"v1","items":[{` + item + `}]}`, "with v1 SecretList"},
	} {
		t.Run(name, func(t *testing.T) {
			client := newServer(t, map[string]answer{"GET " + c.path + "?limit=500": {body: c.body}}).client(t, cluster.Options{})
			_, err := stream(t, client.Source(engine.Scope{ClusterScoped: true}, cluster.SourceOptions{}), engine.Selection{Group: "*", Kind: c.kind})
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

// So has an object that is read by its name.
func TestNamedObjectOfAnotherKind(t *testing.T) {
	s := newServer(t, map[string]answer{"GET /api/v1/namespaces/shop/configmaps/a": {body: `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"shop"}}`}})
	scope := engine.Scope{Namespaces: []string{"shop"}, Only: []engine.ObjectKey{{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "shop", Name: "a"}}}
	_, err := stream(t, s.client(t, cluster.Options{}).Source(scope, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
	if err == nil || !strings.Contains(err.Error(), "the server answers a request for v1 ConfigMap with v1 Secret") {
		t.Errorf("got %v", err)
	}
}

// A schema is read where the server publishes schemas, below its path in the kubeconfig, and nowhere else.
func TestSchemaAddress(t *testing.T) {
	for address, want := range map[string]string{
		"/openapi/v3/api/v1?hash=1":                "GET /clusters/c1/openapi/v3/api/v1?hash=1&timeout=32s",
		"/clusters/c1/openapi/v3/api/v1":           "GET /clusters/c1/openapi/v3/api/v1?timeout=32s",
		"/api/v1/namespaces/shop/secrets/token":    "",
		"/openapi/v3/../../api/v1/secrets":         "",
		"/openapi/v3/%2e%2e/%2e%2e/api/v1/secrets": "",
		"/openapi/v3x":                             "",
		"/clusters/c2/openapi/v3/api/v1":           "",
		"//example.com/openapi/v3/api/v1":          "",
	} {
		s := newServer(t, map[string]answer{"GET /clusters/c1/openapi/v3?timeout=32s": {body: fmt.Sprintf(`{"paths":{"api/v1":{"serverRelativeURL":%q}}}`, address)}})
		if want != "" {
			s.answers[want] = answer{body: `{"openapi":"3.0.0","info":{"title":"","version":""},"paths":{},"components":{"schemas":{}}}`}
		}
		s.URL += "/clusters/c1"
		_, err := s.client(t, cluster.Options{}).Schema(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		if sent := s.sent(); want != "" && err != nil || want == "" && (err == nil || !strings.Contains(err.Error(), "not below /openapi/v3") || len(sent) != 1) {
			t.Errorf("%s: %v, %q", address, err, sent)
		}
	}
}
