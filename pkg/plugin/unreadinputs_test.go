package plugin_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// Exceptions decide what a policy changes. That they may not be read is usual, and
// only reported; that the server fails to hand them out leaves a preview without a verdict,
// and an apply without a write.
func TestUnreadInputs(t *testing.T) {
	for name, c := range map[string]struct {
		args       []string
		answer     int
		code       int
		out, quiet string
	}{
		"forbidden":             {[]string{"preview"}, http.StatusForbidden, plugin.ExitChanges, "1 would change (1 field), 0 would not. 1 warning.", "warning: cannot read policyexceptions.kyverno.io"},
		"broken":                {[]string{"preview"}, http.StatusBadRequest, plugin.ExitIncomplete, "1 would change (1 field), 0 would not.", "error: cannot read policyexceptions.kyverno.io"},
		"broken, to be applied": {[]string{"apply-existing", "--yes"}, http.StatusBadRequest, plugin.ExitNothing, "", "error: nothing was written: cannot read policyexceptions.kyverno.io"},
		"not there":             {[]string{"preview"}, http.StatusOK, plugin.ExitChanges, "1 would change (1 field), 0 would not.\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			policy := write(t, dir, "policy.yaml", `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {data: {a: b}}}}]}}`)
			server := serverWithExceptions(t, c.answer)
			useServer(t, server)
			var out, errOut bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
			code := plugin.Run(t.Context(), plugin.NewCommand("kubectl mutate", streams), append(c.args, "-q", "-p", policy), streams)
			if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errOut.String(), c.quiet) || c.quiet == "" && errOut.Len() > 0 {
				t.Errorf("exit code %d, want %d; standard output:\n%s\nstandard error:\n%s", code, c.code, out.String(), errOut.String())
			}
		})
	}
}

// serverWithExceptions serves one ConfigMap, and answers requests for exceptions with
// a code.
func serverWithExceptions(t *testing.T, code int) *httptest.Server {
	t.Helper()
	const (
		namespace = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}`
		system    = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}`
	)
	return serve(t, map[string]string{
		"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "kyverno.io",
			"versions": [{"groupVersion": "kyverno.io/v2", "version": "v2"}], "preferredVersion": {"groupVersion": "kyverno.io/v2", "version": "v2"}}]}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
			{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": ["get", "list"]},
			{"name": "namespaces", "kind": "Namespace", "verbs": ["get", "list"]}]}`,
		"/apis/kyverno.io/v2": `{"kind": "APIResourceList", "groupVersion": "kyverno.io/v2", "resources": [
			{"name": "policyexceptions", "namespaced": true, "kind": "PolicyException", "verbs": ["get", "list"]}]}`,
		"/api/v1/namespaces/default":            namespace,
		"/api/v1/namespaces/kube-system":        system,
		"/api/v1/namespaces":                    `{"apiVersion": "v1", "kind": "NamespaceList", "items": [` + namespace + `]}`,
		"/api/v1/namespaces/default/configmaps": `{"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "c", "namespace": "default"}}]}`,
	}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/apis/kyverno.io/v2/policyexceptions":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`)
		case code == http.StatusOK:
			fmt.Fprint(w, `{"apiVersion": "kyverno.io/v2", "kind": "PolicyExceptionList", "items": []}`)
		default:
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": %q, "message": "no", "code": %d}`,
				strings.ReplaceAll(http.StatusText(code), " ", ""), code)
		}
	})
}
