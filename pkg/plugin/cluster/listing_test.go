package cluster_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// listServer answers requests for ConfigMaps.
func listServer(t *testing.T, listed func(r *http.Request) answer) *fakeServer {
	t.Helper()
	s := newServer(t, nil)
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/configmaps" {
			return false
		}
		a := listed(r)
		if a.code != 0 {
			w.WriteHeader(a.code)
		}
		fmt.Fprint(w, a.body)
		return true
	}
	return s
}

// TestPagesAreOfAGoodSize lists objects of which some twenty fit into an answer, and those whose pages should
// have about a mebibyte, and a tenth of the objects at least.
func TestPagesAreOfAGoodSize(t *testing.T) {
	for name, c := range map[string]struct {
		size, objects int
		most, chunk   int64
		want          string // the limits of the requests
	}{
		"too large an answer": {6 << 10, 24, 128 << 10, 60, "60 6 6 6 6"},
		"small objects":       {100, 1000, 0, 0, "500 500"},
		"medium objects":      {5 << 10, 1000, 0, 0, "500 204 204 204"},
		"large objects":       {200 << 10, 600, 0, 0, "500 50 50"},
	} {
		var limits []string
		text := strings.Repeat("x", c.size-50)
		server := listServer(t, func(r *http.Request) answer {
			limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
			from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
			limits = append(limits, strconv.Itoa(limit))
			items, next := []string{}, ""
			for i := from; i < min(from+limit, c.objects); i++ {
				items = append(items, fmt.Sprintf(`{"metadata":{"name":"c%03d","uid":"u%03d"},"x":%q}`, i, i, text))
			}
			if from+limit < c.objects {
				next = strconv.Itoa(from + limit)
			}
			return answer{body: fmt.Sprintf(`{"metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))}
		})
		server.most = c.most
		names, err := stream(t, server.client(t, cluster.Options{ChunkSize: c.chunk}).Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
		if err != nil || len(names) != c.objects || strings.Join(limits, " ") != c.want {
			t.Errorf("%s: %d objects in pages of %v, error %v; want %s", name, len(names), limits, err, c.want)
		}
	}
}
