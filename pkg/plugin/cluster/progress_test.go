package cluster_test

import (
	"context"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

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
