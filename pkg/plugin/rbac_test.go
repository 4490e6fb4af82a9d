package plugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// A server that cannot be asked for its kinds is not asked again for each policy.
func TestRBACWithoutAServer(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	defer server.Close()
	requests := func(policies int) int64 {
		var text strings.Builder
		for i := range policies {
			fmt.Fprintf(&text, "---\napiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p%d}\nspec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]}\n", i)
		}
		file := filepath.Join(t.TempDir(), "policies.yaml")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		asked.Store(0)
		streams, _, _, errOut := genericiooptions.NewTestIOStreams()
		code := Run(t.Context(), NewCommand("kubectl-mutate", streams, nil), []string{"rbac", "-p", file, "--server", server.URL, "--cache-dir", t.TempDir()}, streams)
		if code != process.ExitNothing {
			t.Errorf("exit code %d: %s", code, errOut)
		}
		return asked.Load()
	}
	if few, many := requests(1), requests(20); few == 0 || few != many {
		t.Errorf("%d requests for one policy, %d for 20", few, many)
	}
}
