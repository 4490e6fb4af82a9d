package metrics_test

import (
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

func deployment(namespace string) engine.ObjectKey {
	return engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: namespace, Name: "web"}
}

// example counts every outcome of interest at least once.
func example() *metrics.Run {
	team := engine.RuleRef{Dialect: "kyverno", Policy: "labels", Rule: "team"}
	odd := engine.RuleRef{Dialect: "kyverno", Policy: "shop/odd", Rule: "say \"hi\"\\\nand \xff\x1b[2J"}
	node := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Node"}, Name: "worker-1"}
	there := &unstructured.Unstructured{}
	step := func(r engine.RuleRef, k engine.ObjectKey, o engine.Outcome) engine.Step {
		return engine.Step{Rule: r, Outcome: o}
	}
	r := metrics.New("apply-existing", "v1.2.3")
	for _, ns := range []string{"shop", "team", "shop"} {
		r.Evaluated(&engine.Change{
			Subject: deployment(ns), Before: there, Fields: make([]engine.FieldChange, 2),
			Steps: []engine.Step{step(team, deployment(ns), engine.Changed), step(team, deployment(ns), engine.Changed), step(odd, deployment(ns), engine.Skipped)},
		})
	}
	r.Evaluated(&engine.Change{Subject: node, Before: there, Steps: []engine.Step{
		step(team, node, engine.NotMatched), step(odd, node, engine.Failed),
	}})
	// A target that does not exist is not an object, but a failure of the rule.
	r.Evaluated(&engine.Change{Subject: deployment("gone"), Steps: []engine.Step{step(team, deployment("gone"), engine.Failed)}})
	r.Written(&write.Result{Key: deployment("shop"), Outcome: write.Applied, Status: &write.Result{Key: deployment("shop"), Outcome: write.Failed}}, []engine.RuleRef{team, team})
	r.Written(&write.Result{Key: deployment("team"), Outcome: write.Conflicted}, []engine.RuleRef{team, odd})
	return r
}

func TestWriteTo(t *testing.T) {
	var got, again strings.Builder
	for _, b := range []*strings.Builder{&got, &again} {
		if n, err := example().WriteTo(b); err != nil || int(n) != b.Len() {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if diff := cmp.Diff(got.String(), again.String()); diff != "" {
		t.Errorf("equal runs differ:\n%s", diff)
	}
	golden := filepath.Join("testdata", "example.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The counts of the runs on several clusters are one file, and name the clusters.
func TestCountsOfClusters(t *testing.T) {
	r := metrics.New("apply-existing", "v1")
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "shop", Name: "a"}
	rule := engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "r"}
	for _, cluster := range []string{"eu", "us", "us"} {
		r.On(cluster).Evaluated(&engine.Change{Subject: key, Before: &unstructured.Unstructured{}, Steps: []engine.Step{{Rule: rule, Outcome: engine.Changed}}})
		r.On(cluster).Written(&write.Result{Key: key, Outcome: write.Applied}, []engine.RuleRef{rule})
	}
	var out strings.Builder
	if _, err := r.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`kubectl_mutate_objects{cluster="eu",kind="ConfigMap",namespace="shop",result="unchanged"} 1.0`,
		`kubectl_mutate_objects{cluster="us",kind="ConfigMap",namespace="shop",result="unchanged"} 2.0`,
		`kubectl_mutate_rule_objects{dialect="kyverno",policy="p",rule="r",cluster="us",kind="ConfigMap",namespace="shop",outcome="changed"} 2.0`,
		`kubectl_mutate_writes{cluster="us",kind="ConfigMap",namespace="shop",outcome="applied"} 2.0`,
		`kubectl_mutate_rule_writes{dialect="kyverno",policy="p",rule="r",cluster="eu",kind="ConfigMap",namespace="shop",outcome="applied"} 1.0`,
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("there is no %s in:\n%s", line, &out)
		}
	}
	if none := (*metrics.Run)(nil).On("eu"); none != nil {
		t.Errorf("what counts nothing counts %v", none)
	}
}

// Whatever the names are, the metrics are well formed, and act on no terminal that shows them.
func TestMetricsOfHostileNames(t *testing.T) {
	for _, text := range hostile.Texts() {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: text.Text, Kind: text.Text}, Version: text.Text, Namespace: text.Text, Name: text.Text}
		rule := engine.RuleRef{Dialect: "kyverno", Policy: text.Text, Rule: text.Text}
		r := metrics.New("apply-existing", text.Text)
		r.Evaluated(&engine.Change{Subject: key, Before: &unstructured.Unstructured{}, Steps: []engine.Step{{Rule: rule, Outcome: engine.Failed}}})
		r.Written(&write.Result{Key: key, Outcome: write.Failed}, []engine.RuleRef{rule})
		var out strings.Builder
		_, err := r.WriteTo(&out)
		if err := errors.Join(err, hostile.Terminal(out.String()), hostile.Lines(out.String(), 19)); err != nil {
			t.Errorf("%s %.80q: %v", text.Class, text.Text, err)
		}
	}
}

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
	r := metrics.NewWatch("preview", "v1.2.3", func() (int, int, int) { return waiting, 2, 1 })
	var mu sync.Mutex
	note, why := "", errors.New("configmaps: not watched yet\x1b[2J")
	s, err := metrics.Listen(t.Context(), ":0", r, func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return note, why
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
	mu.Lock()
	note = "1 object refused (a\x1b[2J)"
	mu.Unlock()
	if code, _, text := ask(t, http.MethodGet, base+"/readyz"); code != http.StatusOK || text != `ready: 1 object refused (a\x1b[2J)`+"\n" {
		t.Errorf("ready with a note: %d %q", code, text)
	}
	waiting = 7
	r.Event(engine.OperationUpdate, schema.GroupKind{Kind: "ConfigMap"})
	code, kind, text := ask(t, http.MethodGet, base+"/metrics")
	if code != http.StatusOK || kind != "application/openmetrics-text; version=1.0.0; charset=utf-8" {
		t.Errorf("%d %s", code, kind)
	}
	for _, line := range []string{
		"# TYPE kubectl_mutate_watch_events counter\n", `kubectl_mutate_watch_events_total{operation="UPDATE",kind="ConfigMap"} 1.0` + "\n",
		"# TYPE kubectl_mutate_watch_waiting_events gauge\nkubectl_mutate_watch_waiting_events 7.0\n", "kubectl_mutate_watch_pending_objects 2.0\n", "kubectl_mutate_watch_refused_objects 1.0\n", "kubectl_mutate_watch_errors_total 0.0\n",
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
	r := metrics.NewWatch("preview", "v1", func() (int, int, int) { return 0, 0, 0 })
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
