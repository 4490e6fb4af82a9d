package cluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// A Namespace that the user names is read once, whoever asks for it.
func TestNamespaceIsReadOnce(t *testing.T) {
	s := newServer(t, map[string]answer{
		"GET /api/v1/namespaces/shop":                      {body: `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop"}}`},
		"GET /api/v1/namespaces/shop/configmaps?limit=500": page("", "a"),
	})
	client := s.client(t, cluster.Options{QPS: -1})
	if _, err := client.Namespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	scope := engine.Scope{Namespaces: []string{"shop"}}
	if _, err := stream(t, client.Source(scope, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"}); err != nil {
		t.Fatal(err)
	}
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: "shop"}
	for range 2 {
		if _, err := client.Reader().Get(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"GET /api/v1/namespaces/shop", "GET /api/v1/namespaces/shop/configmaps?limit=500"}
	if diff := cmp.Diff(want, s.sent()); diff != "" {
		t.Error(diff)
	}
}

// Policies get the Namespaces that the run has listed; the others are read one by one.
func TestReaderKnowsNamespaces(t *testing.T) {
	const all = 500
	for name, c := range map[string]struct {
		listed   bool // by the source
		forbids  bool
		requests int
	}{
		"listed":        {listed: true, requests: 1},
		"one by one":    {requests: all},
		"not permitted": {listed: true, forbids: true, requests: all + 1},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			s := newServer(t, map[string]answer{"GET /api/v1/configmaps?limit=500": {body: `{"items":[{"metadata":{"name":"a","namespace":"n0"}}]}`}})
			s.instead = func(w http.ResponseWriter, r *http.Request) bool {
				one, isOne := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/")
				switch {
				case r.URL.Path == "/api/v1/configmaps":
					return false
				case isOne:
					fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q}}`, one)
				case c.forbids:
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, status(http.StatusForbidden, "Forbidden", "").body)
				default:
					var items []string
					for i := range all {
						items = append(items, fmt.Sprintf(`{"metadata":{"name":"n%d"}}`, i))
					}
					fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
				}
				requests++
				return true
			}
			client := s.client(t, cluster.Options{QPS: -1})
			if c.listed {
				if _, err := stream(t, client.Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range all {
				name := fmt.Sprint("n", i)
				u, err := client.Reader().Get(t.Context(), engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: name})
				if err != nil || u.GetName() != name {
					t.Fatalf("%s: %v, %v", name, u, err)
				}
			}
			if requests != c.requests {
				t.Errorf("%d requests, want %d", requests, c.requests)
			}
		})
	}
}
