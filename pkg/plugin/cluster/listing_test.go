package cluster_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// listServer answers the n-th request for ConfigMaps, counted from 0.
func listServer(t *testing.T, listed func(n int, r *http.Request) answer) (*fakeServer, *int) {
	t.Helper()
	n := 0
	s := &fakeServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if body, ok := discoveryAnswers()[r.URL.Path]; ok {
			fmt.Fprint(w, body)
			return
		}
		if r.URL.Path == "/api/v1/namespaces" {
			fmt.Fprint(w, `{"items":[]}`)
			return
		}
		a := listed(n, r)
		if n++; a.code != 0 {
			w.WriteHeader(a.code)
		}
		fmt.Fprint(w, a.body)
	}))
	t.Cleanup(s.Close)
	return s, &n
}

// TestLargePagesAreAskedForInParts lists objects of which some twenty fit into an answer.
func TestLargePagesAreAskedForInParts(t *testing.T) {
	const objects = 24
	large := strings.Repeat("x", 6<<10)
	var limits []string
	server, _ := listServer(t, func(_ int, r *http.Request) answer {
		limits = append(limits, r.URL.Query().Get("limit"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		items, next := []string{}, ""
		for i := from; i < min(from+limit, objects); i++ {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"c%d","uid":"u%d"},"x":"%s"}`, i, i, large))
		}
		if from+limit < objects {
			next = strconv.Itoa(from + limit)
		}
		return answer{body: fmt.Sprintf(`{"metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))}
	})
	server.most = 128 << 10
	names, err := stream(t, server.client(t, cluster.Options{ChunkSize: 60}).Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
	if err != nil || len(names) != objects || strings.Join(limits, " ") != "60 6 6 6 6" {
		t.Errorf("%d objects in pages of %v, error %v", len(names), limits, err)
	}
}

// TestLargeObjectsComeInSmallPages lists objects whose pages should have about a mebibyte, and a tenth of the objects at least.
func TestLargeObjectsComeInSmallPages(t *testing.T) {
	for size, want := range map[int]string{100: "500 500", 5 << 10: "500 204 204 204", 200 << 10: "500 50 50"} {
		objects := 1000
		if size > 100<<10 {
			objects = 600
		}
		var limits []string
		text := strings.Repeat("x", size-50)
		server, _ := listServer(t, func(_ int, r *http.Request) answer {
			limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
			from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
			limits = append(limits, strconv.Itoa(limit))
			items := []string{}
			for i := from; i < min(from+limit, objects); i++ {
				items = append(items, fmt.Sprintf(`{"metadata":{"name":"c%03d","uid":"u%03d"},"x":%q}`, i, i, text))
			}
			next := ""
			if from+limit < objects {
				next = strconv.Itoa(from + limit)
			}
			return answer{body: fmt.Sprintf(`{"metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))}
		})
		names, err := stream(t, server.client(t, cluster.Options{}).Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
		if err != nil || len(names) != objects || strings.Join(limits, " ") != want {
			t.Errorf("%d objects of %d bytes in pages of %v, error %v; want %s", len(names), size, limits, err, want)
		}
	}
}
