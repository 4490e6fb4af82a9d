package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

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

// TestListingsEnd lists from servers that would go on for ever.
func TestListingsEnd(t *testing.T) {
	token := func(n int) string { return "token" + strconv.Itoa(n) }
	name := func(n int) string { return "c" + strconv.Itoa(n) }
	for what, c := range map[string]struct {
		listed   func(n int, r *http.Request) answer
		requests int // at most
		want     string
	}{
		"one token":          {func(n int, _ *http.Request) answer { return page("same", name(n)) }, 2, "the same continue token twice"},
		"tokens in a circle": {func(n int, _ *http.Request) answer { return page(token(n%7), name(n)) }, 8, "the same continue token twice"},
		"one page":           {func(n int, _ *http.Request) answer { return page(token(n), "a", "b") }, 2, "the same page twice"},
		"pages in a circle":  {func(n int, _ *http.Request) answer { return page(token(n), name(n%7), name(n)) }, 8, "the same page twice"},
		"empty pages":        {func(n int, _ *http.Request) answer { return page(token(n)) }, 101, "more than 100 pages without an object"},
		"empty pages between": {func(n int, _ *http.Request) answer {
			if n%2 == 0 {
				return page(token(n), name(n))
			}
			return page(token(n))
		}, 202, "more than 100 pages without an object"},
		"a large token": {func(int, *http.Request) answer { return page(strings.Repeat("t", 1<<17), "a") }, 1, "a continue token of 131072 bytes"},
		"small pages":   {func(n int, _ *http.Request) answer { return page(token(n), name(n)) }, 1001, "more than 1000 pages with fewer than 50 objects, where 500 were asked for"},
		"small pages after a large one": {func(n int, _ *http.Request) answer {
			if n == 0 {
				return answer{body: `{"items":[` + strings.Repeat("{},", 2<<20) + `{}]}`}
			}
			return page(token(n), name(n))
		}, 1002, "more than 1000 pages with fewer than 50 objects, where 500 were asked for"},
		"expired always": {func(n int, _ *http.Request) answer {
			if n%2 == 0 {
				return page(token(n), name(n))
			}
			return status(http.StatusGone, "Expired", "")
		}, 8, "its pages expire before they are read"},
		"expired with a token": {func(n int, _ *http.Request) answer {
			if n == 0 {
				return page(token(n), name(n))
			}
			return status(http.StatusGone, "Expired", token(n))
		}, 4, "410"},
		"garbage for names": {func(n int, _ *http.Request) answer {
			return answer{body: fmt.Sprintf(`{"metadata":{"continue":%q},"items":[{},{"metadata":{"name":1}},{"metadata":null}]}`, token(n))}
		}, 2, "the same page twice"},
	} {
		t.Run(what, func(t *testing.T) {
			server, requests := listServer(t, c.listed)
			client := server.client(t, cluster.Options{QPS: -1})
			_, err := stream(t, client.Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
			if err == nil {
				t.Fatal("no error")
			}
			var endless *cluster.ListingError
			var partial *engine.UnreadableError
			switch {
			case c.want == "410":
			case !errors.As(err, &endless) || endless.Resource != (schema.GroupResource{Resource: "configmaps"}) || !strings.Contains(err.Error(), c.want):
				t.Errorf("error %v, want %s", err, c.want)
			case !errors.As(err, &partial):
				t.Errorf("%v ends the run", err)
			}
			if *requests > c.requests {
				t.Errorf("%d requests, want at most %d", *requests, c.requests)
			}
		})
	}
}

// TestLargePagesAreAskedForInParts lists objects of which some twenty fit into an answer.
func TestLargePagesAreAskedForInParts(t *testing.T) {
	const objects = 24
	large := strings.Repeat("[[],[]],", 100_000) // some 22 MiB when it is decoded
	var limits []string
	server, _ := listServer(t, func(_ int, r *http.Request) answer {
		limits = append(limits, r.URL.Query().Get("limit"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		items, next := []string{}, ""
		for i := from; i < min(from+limit, objects); i++ {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"c%d","uid":"u%d"},"x":[%s1]}`, i, i, large))
		}
		if from+limit < objects {
			next = strconv.Itoa(from + limit)
		}
		return answer{body: fmt.Sprintf(`{"metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))}
	})
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

// TestListingsInOnePiece asks for no part of a list.
func TestListingsInOnePiece(t *testing.T) {
	server, _ := listServer(t, func(_ int, r *http.Request) answer {
		if r.URL.Query().Has("limit") {
			t.Errorf("asked for %s", r.URL)
		}
		return page("", "a", "b")
	})
	names, err := stream(t, server.client(t, cluster.Options{ChunkSize: -1}).Source(engine.Scope{}, cluster.SourceOptions{}), engine.Selection{Kind: "ConfigMap"})
	if err != nil || len(names) != 2 {
		t.Errorf("%d objects, error %v", len(names), err)
	}
}

// TestObjectsAreBounded reads a list whose one object takes too much memory.
func TestObjectsAreBounded(t *testing.T) {
	list, err := cluster.SplitRawList([]byte(`{"items":[{"metadata":{"namespace":"shop","name":"large"},"x":[` + strings.Repeat("1,", 3_000_000) + `1]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := list.Items[0].Decode(); err == nil || err.Error() != "decode shop/large: the object takes more than 128 MiB of memory, the most that one may take" {
		t.Errorf("error %v", err)
	}
}
