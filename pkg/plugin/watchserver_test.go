package plugin_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// A server that goes away while a watch begins again with changed policies: what had begun is not watched
// twice.
func TestWatchBeginsAgain(t *testing.T) {
	tier.NotShort(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	policy := write(t, t.TempDir(), "policy.yaml", labelPolicy)
	const configMaps, namespaces = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces"
	var mu sync.Mutex
	var failures int            // that are left
	var changed bool            // the policies have changed
	watches := map[string]int{} // that were opened
	opened := func(path string) {
		mu.Lock()
		defer mu.Unlock()
		watches[path]++
		switch {
		case changed && path == namespaces:
			time.AfterFunc(300*time.Millisecond, end)
		case !changed && len(watches) == 2:
			write(t, filepath.Dir(policy), "policy.yaml", strings.Replace(labelPolicy, `"e": "f"`, `"e": "g"`, 1))
		}
	}
	closed := func() {
		mu.Lock()
		defer mu.Unlock()
		if !changed {
			changed, failures = true, 5 // all attempts of one read
			clear(watches)
		}
	}
	fails := func() bool {
		mu.Lock()
		defer mu.Unlock()
		failures--
		return failures >= 0
	}
	s := &apiServer{instead: func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		watched := r.URL.Query().Get("watch") != ""
		switch {
		case r.URL.Path == "/api/v1":
			_, _ = io.WriteString(w, strings.ReplaceAll(apiAnswers()["/api/v1"], `"list"`, `"list", "watch"`))
		case watched:
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			opened(r.URL.Path)
			<-r.Context().Done()
			closed()
		case r.URL.Path == namespaces && fails():
			w.WriteHeader(http.StatusInternalServerError)
		default:
			return false
		}
		return true
	}}
	s.Server = httptest.NewServer(s)
	defer s.Close()
	got := runUntil(ctx, t, s, "{token: hidden}", []string{"preview", "configmaps", "-p", policy, "--watch"})
	t.Logf("%s%s%v", got.out, got.errOut, watches)
	if !strings.Contains(got.errOut, "watch namespaces: ") || watches[configMaps] != 2 { // as what rules match, and as targets
		t.Errorf("watches: %v", watches)
	}
}
