package cluster_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

func TestReportWaits(t *testing.T) {
	s := newServer(t, map[string]answer{"GET /api/v1/namespaces/shop": {body: `{"metadata":{"name":"shop"}}`}})
	refused := false
	patient := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/namespaces/shop" && !refused {
			refused = true
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		s.serve(w, r)
	}))
	t.Cleanup(patient.Close)
	s.URL = patient.URL
	var waited time.Duration
	client := s.client(t, cluster.Options{Waiting: func(from, to time.Time) { waited += to.Sub(from) }})
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: "shop"}
	if _, err := client.Get(context.Background(), key); err != nil {
		t.Fatal(err)
	}
	if !refused || waited < time.Second || waited > 2*time.Second {
		t.Errorf("refused %v, waited %v", refused, waited)
	}
}

// A server that says that it has API Priority and Fairness sets the pace, unless the user does.
func TestServerSetsThePace(t *testing.T) {
	for name, c := range map[string]struct {
		fair, waits bool
		options     cluster.Options
	}{
		"with API Priority and Fairness":   {fair: true},
		"without it":                       {waits: true},
		"a limit that is typed":            {fair: true, waits: true, options: cluster.Options{QPS: 1000, Burst: 1}},
		"a burst that is typed":            {fair: true, waits: true, options: cluster.Options{Burst: 300}},
		"no limit that is typed, not fair": {options: cluster.Options{QPS: -1}},
		"no limit that is typed, and fair": {fair: true, options: cluster.Options{QPS: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, map[string]answer{"GET /api/v1/namespaces/shop": {body: `{"metadata":{"name":"shop"}}`}})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.fair {
					w.Header().Set("X-Kubernetes-PF-FlowSchema-UID", "8f8e")
				}
				s.serve(w, r)
			}))
			t.Cleanup(server.Close)
			s.URL = server.URL
			var waited time.Duration
			c.options.Waiting = func(from, to time.Time) { waited += to.Sub(from) }
			client := s.client(t, c.options)
			key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: "shop"}
			for range 310 { // more than the default burst
				if _, err := client.Get(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			if waits := waited > time.Millisecond; waits != c.waits {
				t.Errorf("waited %v", waited)
			}
		})
	}
}

func TestSourceReportsHowManyObjectsFollow(t *testing.T) {
	first := answer{body: `{"metadata":{"continue":"next","remainingItemCount":1},"items":[{"metadata":{"name":"a","namespace":"shop","uid":"a"}},{"metadata":{"name":"b","namespace":"shop","uid":"b"}}]}`}
	s := newServer(t, map[string]answer{
		"GET /api/v1/configmaps?limit=2":               first,
		"GET /api/v1/configmaps?continue=next&limit=2": page("", "c"),
		"GET /api/v1/namespaces?limit=2":               {body: `{"items":[]}`},
	})
	type listing struct {
		resource string
		seen     int
		left     int64
	}
	var got []listing
	source := s.client(t, cluster.Options{ChunkSize: 2}).Source(engine.Scope{ClusterScoped: true}, cluster.SourceOptions{
		Listed: func(resource string, seen int, left int64) { got = append(got, listing{resource, seen, left}) },
	})
	for _, err := range source.Pages(context.Background(), []engine.Selection{{Version: "v1", Kind: "ConfigMap"}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 || got[0] != (listing{"configmaps", 2, 1}) || got[1] != (listing{"configmaps", 3, 0}) {
		t.Errorf("got %v", got)
	}
}
