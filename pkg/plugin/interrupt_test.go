package plugin_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// A shell makes 130 of a program that Ctrl-C has ended; so do all commands.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	policy := write(t, dir, "policy.yaml", `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {data: {a: b}}}}]}}`)
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: shop}}\n", i)
	}
	objects := write(t, dir, "objects.yaml", many.String())
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"preview while it prints": {[]string{"preview", "-o", "name", "-f", objects}, `^error: interrupted after [1-9]\d{0,3} objects\n$`},
		"explain while it prints": {[]string{"explain", "configmaps", "--group-by", "object", "-f", objects}, `^error: interrupted after [1-9]\d{0,3} objects\n$`},
		"preview while it asks":   {[]string{"preview"}, `^error: interrupted\n$`},
		"explain while it asks":   {[]string{"explain", "configmap/c"}, `^error: interrupted\n$`},
		"apply while it asks":     {[]string{"apply-existing"}, `^error: interrupted\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			useServer(t, serverThatHangs(t, cancel))
			var errOut bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: onWrite(cancel), ErrOut: &errOut}
			code := plugin.Run(ctx, plugin.NewCommand("kubectl mutate", streams, nil), append(c.args, "-p", policy), streams)
			if code != process.ExitInterrupted || !regexp.MustCompile(c.want).MatchString(errOut.String()) {
				t.Errorf("exit code %d, want %d; standard error:\n%s", code, process.ExitInterrupted, errOut.String())
			}
		})
	}
}

// serverThatHangs serves ConfigMaps and Namespaces, and answers no request for one.
func serverThatHangs(t *testing.T, asked func()) *httptest.Server {
	t.Helper()
	return serve(t, discovery("v1 configmaps ConfigMap get,list", "v1 namespaces Namespace get,list cluster"), func(_ http.ResponseWriter, r *http.Request) {
		asked()
		<-r.Context().Done()
	})
}

// serve answers requests by their paths, and others as it is told.
func serve(t *testing.T, answers map[string]string, others http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := answers[r.URL.Path]; ok {
			fmt.Fprint(w, answer)
			return
		}
		others(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// useServer makes a server the cluster of the commands that follow.
func useServer(t *testing.T, server *httptest.Server) {
	t.Helper()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	t.Setenv("KUBECONFIG", write(t, t.TempDir(), "kubeconfig", kubeconfigFor(server)))
}

func kubeconfigFor(server *httptest.Server) string {
	return fmt.Sprintf(
		`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}`, server.URL)
}

// onWrite is called for each write.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
