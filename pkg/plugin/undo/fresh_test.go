package undo

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// staleServer answers with one version of an object after the other.
type staleServer struct {
	apply.Server
	versions []string
	failed   error
	reads    int
}

func (s *staleServer) Get(context.Context, engine.ObjectKey) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetResourceVersion(s.versions[min(s.reads, len(s.versions)-1)])
	s.reads++
	return u, s.failed
}

func (s *staleServer) Patch(context.Context, engine.ObjectKey, cluster.Patch) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetResourceVersion("300")
	return u, nil
}

func TestFreshServerReadsNoStaleState(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Name: "c"}
	knowing := func(s *staleServer) *freshServer {
		f := newFreshServer(s)
		f.know(key, "100")
		return f
	}
	for _, tt := range []struct {
		name     string
		versions []string
		want     string
		reads    int
	}{
		{"as the run left it", []string{"100"}, "100", 1},
		{"written by others since", []string{"101"}, "101", 1},
		{"stale twice", []string{"99", "9", "100"}, "100", 3},
		{"a server whose versions do not compare", []string{"x"}, "x", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &staleServer{versions: tt.versions}
			live, err := knowing(s).Get(t.Context(), key)
			if err != nil || live.GetResourceVersion() != tt.want || s.reads != tt.reads {
				t.Errorf("got %v, %v after %d reads", live, err, s.reads)
			}
		})
	}
	monotonic := knowing(&staleServer{versions: []string{"120", "110", "121"}})
	for _, want := range []string{"120", "121"} {
		if live, err := monotonic.Get(t.Context(), key); err != nil || live.GetResourceVersion() != want {
			t.Errorf("got %v, %v, want %s", live, err, want)
		}
	}
	s := &staleServer{versions: []string{"200"}}
	f := knowing(s)
	if _, err := f.Patch(t.Context(), key, cluster.Patch{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(t.Context(), key); err == nil || !strings.Contains(err.Error(), "from before the run") {
		t.Errorf("a state from before its own write: %v after %d reads", err, s.reads)
	}
}
