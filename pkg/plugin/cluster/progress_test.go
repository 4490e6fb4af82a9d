package cluster_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

func TestReportWaits(t *testing.T) {
	s := newServer(t, map[string]answer{"GET /api/v1/namespaces/shop": {body: `{"metadata":{"name":"shop"}}`}})
	refused := false
	s.instead = func(w http.ResponseWriter, _ *http.Request) bool {
		if refused {
			return false
		}
		refused = true
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}
	var waits []time.Duration
	client := s.client(t, cluster.Options{Waiting: func(from, to time.Time) { waits = append(waits, to.Sub(from)) }})
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: "shop"}
	if _, err := client.Get(context.Background(), key); err != nil {
		t.Fatal(err)
	}
	if !refused || !slices.Contains(waits, time.Second) {
		t.Errorf("refused %v, waited %v", refused, waits)
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
