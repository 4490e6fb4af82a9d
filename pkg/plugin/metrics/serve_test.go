package metrics_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
)

// ask returns what a server answers.
func ask(t *testing.T, method, url string) (code int, kind, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Content-Type"), string(body)
}

func TestServer(t *testing.T) {
	waiting := 0
	r := metrics.NewWatch("preview", "v1.2.3", func() int { return waiting })
	var mu sync.Mutex
	why := errors.New("configmaps: not watched yet\x1b[2J")
	s, err := metrics.Listen(t.Context(), ":0", r, func() error {
		mu.Lock()
		defer mu.Unlock()
		return why
	})
	if err != nil {
		t.Fatal(err)
	}
	base, ok := strings.CutSuffix(s.URL(), "/metrics")
	if !ok || !strings.HasPrefix(base, "http://127.0.0.1:") {
		t.Fatalf("it serves at %s", s.URL())
	}
	if code, _, text := ask(t, http.MethodGet, base+"/readyz"); code != http.StatusServiceUnavailable || text != `configmaps: not watched yet\x1b[2J`+"\n" {
		t.Errorf("not ready: %d %q", code, text)
	}
	mu.Lock()
	why = nil
	mu.Unlock()
	if code, _, text := ask(t, http.MethodGet, base+"/readyz"); code != http.StatusOK || text != "ready\n" {
		t.Errorf("ready: %d %q", code, text)
	}
	waiting = 7
	r.Event(engine.OperationUpdate, schema.GroupKind{Kind: "ConfigMap"})
	code, kind, text := ask(t, http.MethodGet, base+"/metrics")
	if code != http.StatusOK || kind != "application/openmetrics-text; version=1.0.0; charset=utf-8" {
		t.Errorf("%d %s", code, kind)
	}
	for _, line := range []string{
		"# TYPE kubectl_mutate_watch_events counter\n", `kubectl_mutate_watch_events_total{operation="UPDATE",kind="ConfigMap"} 1.0` + "\n",
		"# TYPE kubectl_mutate_watch_waiting_events gauge\nkubectl_mutate_watch_waiting_events 7.0\n", "kubectl_mutate_watch_errors_total 0.0\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %q in:\n%s", line, text)
		}
	}
	for path, want := range map[string]int{"/": http.StatusNotFound, "/metrics/": http.StatusNotFound, "/debug/pprof/": http.StatusNotFound} {
		if code, _, _ := ask(t, http.MethodGet, base+path); code != want {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, _, _ := ask(t, http.MethodPost, base+"/metrics"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
	if _, err := metrics.Listen(t.Context(), strings.TrimPrefix(base, "http://"), r, nil); err == nil {
		t.Error("an address that is taken is no error")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), time.Second); err == nil {
		_ = c.Close()
		t.Error("it serves after its end")
	}
}

// What a watch counts does not grow with the namespaces that come and go.
func TestWatchCountsNoNamespaces(t *testing.T) {
	r := metrics.NewWatch("preview", "v1", func() int { return 0 })
	size := func() int {
		var b strings.Builder
		if _, err := r.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return strings.Count(b.String(), "\n")
	}
	lines := 0
	for i := range 1000 {
		key := deployment("team-" + strings.Repeat("x", i))
		rule := engine.RuleRef{Dialect: "kyverno", Policy: "labels", Rule: "team"}
		r.Evaluated(&engine.Change{Subject: key, Before: &unstructured.Unstructured{}, Steps: []engine.Step{{Rule: rule, Outcome: engine.Failed}}})
		if i == 0 {
			lines = size()
		}
	}
	if got := size(); got != lines {
		t.Errorf("%d lines, and %d after the first", got, lines)
	}
}
