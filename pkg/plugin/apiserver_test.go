package plugin_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// apiServer is an API server with one ConfigMap, which takes every patch for one that adds the
// label a, and grants all. Instead, if set, may answer a request in its place.
type apiServer struct {
	*httptest.Server
	instead func(w http.ResponseWriter, r *http.Request) bool
	named   string // the context, cluster and user of the kubeconfig; empty for c

	mu       sync.Mutex
	patched  bool
	requests []string // "GET /api", each once, in order
}

const (
	liveConfigMap    = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "uid": "u1", "resourceVersion": "1"}, "data": {"k": "v"}}`
	labeledConfigMap = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "uid": "u1", "resourceVersion": "2", "labels": {"a": "c-true", "e": "f"}}, "data": {"k": "v"}}`
	defaultNamespace = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "uid": "n1", "resourceVersion": "1"}}`
	labelPolicy      = `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p", "uid": "p1", "resourceVersion": "1"}, "spec": {"rules": [
		{"name": "admitted", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
			"context": [{"name": "own", "apiCall": {"urlPath": "/api/v1/namespaces/default/configmaps/c"}},
				{"name": "may", "apiCall": {"urlPath": "/apis/authorization.k8s.io/v1/subjectaccessreviews", "method": "POST", "data": [{"key": "kind", "value": "SubjectAccessReview"}]}}],
			"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "{{ own.metadata.name }}-{{ to_string(may.status.allowed) }}"}}}}},
		{"name": "existing", "match": {"any": [{"resources": {"kinds": ["Namespace"]}}]},
			"mutate": {"targets": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "c"}], "patchStrategicMerge": {"metadata": {"labels": {"e": "f"}}}}}]}}`
	simplePolicy = `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "simple"}, "spec": {"rules": [
		{"name": "label", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}]}}`
)

// apiAnswers are the answers of an apiServer to reads.
func apiAnswers() map[string]string {
	out := map[string]string{
		"/openapi/v3": `{"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=1"}}}`,
		"/openapi/v3/api/v1": `{"openapi": "3.0.0", "info": {"title": "k", "version": "1"}, "paths": {}, "components": {"schemas": {"io.k8s.api.core.v1.ConfigMap": {"type": "object",
			"x-kubernetes-group-version-kind": [{"group": "", "kind": "ConfigMap", "version": "v1"}],
			"properties": {"data": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
				"metadata": {"type": "object", "properties": {"name": {"type": "string"}, "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}}}}}}}}}`,
		"/version":                              `{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}`,
		"/api/v1/namespaces":                    `{"apiVersion": "v1", "kind": "NamespaceList", "metadata": {}, "items": [` + defaultNamespace + `]}`,
		"/api/v1/namespaces/default":            defaultNamespace,
		"/api/v1/namespaces/default/configmaps": `{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": [` + liveConfigMap + `]}`,
		"/apis/kyverno.io/v1/clusterpolicies":   `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicyList", "metadata": {}, "items": [` + labelPolicy + `]}`,
		"/apis/wgpolicyk8s.io/v1alpha2/policyreports": `{"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReportList", "metadata": {}, "items": [{"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport",
			"metadata": {"name": "kubectl-mutate-u1", "namespace": "default", "uid": "r1", "labels": {"app.kubernetes.io/managed-by": "kubectl-mutate", "app.kubernetes.io/instance": "kubectl-mutate"}},
			"scope": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "c", "uid": "u1"}, "results": [{"policy": "p", "rule": "admitted", "result": "fail"}]}]}`,
		"/apis/wgpolicyk8s.io/v1alpha2/clusterpolicyreports": `{"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "ClusterPolicyReportList", "metadata": {}, "items": []}`,
	}
	maps.Copy(out, discovery(
		"v1 configmaps ConfigMap get,list,patch", "v1 events Event get,list,create", "v1 namespaces Namespace get,list cluster", "kyverno.io/v1 clusterpolicies ClusterPolicy get,list cluster",
		"wgpolicyk8s.io/v1alpha2 policyreports PolicyReport get,list", "wgpolicyk8s.io/v1alpha2 clusterpolicyreports ClusterPolicyReport get,list cluster",
	))
	return out
}

// discovery are the answers of an API server about what there is: a version, a resource, its kind and verbs
// in each line, and "cluster" where it has no namespaces.
func discovery(resources ...string) map[string]string {
	text := func(object any) string {
		out, err := json.Marshal(object)
		if err != nil {
			panic(err)
		}
		return string(out)
	}
	var groups []any
	lists := map[string][]any{}
	for _, line := range resources {
		words := strings.Fields(line)
		if group, version, ok := strings.Cut(words[0], "/"); ok && lists[words[0]] == nil {
			v := fields{"groupVersion": words[0], "version": version}
			groups = append(groups, fields{"name": group, "versions": []any{v}, "preferredVersion": v})
		}
		lists[words[0]] = append(lists[words[0]], fields{"name": words[1], "kind": words[2], "verbs": strings.Split(words[3], ","), "namespaced": len(words) == 4})
	}
	out := map[string]string{
		"/api": `{"kind": "APIVersions", "versions": ["v1"]}`, "/apis": text(fields{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
	}
	for version, list := range lists {
		at := "/apis/"
		if version == "v1" {
			at = "/api/"
		}
		out[at+version] = text(fields{"kind": "APIResourceList", "groupVersion": version, "resources": list})
	}
	return out
}

// patchedBy returns what becomes of an object by a request with a JSON patch, or a merge patch.
func patchedBy(r *http.Request, live fields) (after fields, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(live)
	switch {
	case err != nil:
	case r.Header.Get("Content-Type") == "application/json-patch+json":
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			text, err = patch.Apply(text)
		}
	default:
		text, err = jsonpatch.MergePatch(text, body)
	}
	if err == nil {
		err = json.Unmarshal(text, &after)
	}
	return after, err
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if request := r.Method + " " + r.URL.Path; !slices.Contains(s.requests, request) {
		s.requests = append(s.requests, request)
	}
	s.mu.Unlock()
	if s.instead != nil && s.instead(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	body, status := s.answer(r)
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func (s *apiServer) answer(r *http.Request) (body string, status int) {
	const configMap = "/api/v1/namespaces/default/configmaps/c"
	s.mu.Lock()
	defer s.mu.Unlock()
	answer, ok := apiAnswers()[r.URL.Path]
	switch {
	case r.Method == http.MethodPatch && r.URL.Path == configMap:
		s.patched = s.patched || r.URL.Query().Get("dryRun") == ""
		return labeledConfigMap, http.StatusOK
	case r.Method == http.MethodPost && strings.Contains(r.URL.Path, "accessreviews"):
		return `{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": {"allowed": true}}`, http.StatusCreated
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events"):
		return `{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}}`, http.StatusCreated
	case r.Method == http.MethodGet && r.URL.Path == configMap && s.patched:
		return labeledConfigMap, http.StatusOK
	case r.Method == http.MethodGet && r.URL.Path == configMap:
		return liveConfigMap, http.StatusOK
	case r.Method == http.MethodGet && ok:
		return answer, http.StatusOK
	}
	return `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`, http.StatusNotFound
}

// serverCommands are commands that send every request of the program, with the exit code of each
// against a server that is well behaved.
func serverCommands() map[string]struct {
	args []string
	code int
} {
	return map[string]struct {
		args []string
		code int
	}{
		"preview":                {[]string{"preview", "-p", "POLICY"}, process.ExitChanges},
		"preview of the cluster": {[]string{"preview", "--from-cluster"}, process.ExitChanges},
		"explain":                {[]string{"explain", "configmap/c", "-p", "POLICY"}, process.ExitOK},
		"apply-existing":         {[]string{"apply-existing", "-p", "POLICY", "--yes", "--annotate=false", "--journal", "DIR/journal"}, process.ExitOK},
		"dry run":                {[]string{"apply-existing", "-p", "POLICY", "--yes", "--annotate=false", "--dry-run=server"}, process.ExitOK},
		"compare":                {[]string{"compare", "-p", "POLICY", "--with", "POLICY"}, process.ExitOK},
		"convert":                {[]string{"convert", "-p", "SIMPLE", "--namespaces=default", "--variants=0"}, process.ExitOK},
		"summary":                {[]string{"summary"}, process.ExitChanges},
		"policies":               {[]string{"policies", "--from-cluster"}, process.ExitOK},
		"rbac":                   {[]string{"rbac", "-p", "POLICY", "--from-cluster", "--for=apply"}, process.ExitOK},
		"completion":             {[]string{"__complete", "preview", "configmap/"}, process.ExitOK},
	}
}

// serverRun is a command that was run against an apiServer.
type serverRun struct {
	code        int
	out, errOut string
	requests    []string
}

// runAgainst runs a command against a server, with a user of its kubeconfig.
func runAgainst(t testing.TB, s *apiServer, user string, args []string) serverRun {
	t.Helper()
	return runUntil(t.Context(), t, s, user, args)
}

func runUntil(ctx context.Context, t testing.TB, s *apiServer, user string, args []string) serverRun {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", dir)
	name, err := output.MarshalYAML(cmp.Or(s.named, "c"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", write(t, dir, "kubeconfig", fmt.Sprintf(
		`{apiVersion: v1, kind: Config, current-context: %[1]s, clusters: [{name: %[1]s, cluster: {server: %[2]q, insecure-skip-tls-verify: %[3]t}}], users: [{name: %[1]s, user: %[4]s}], contexts: [{name: %[1]s, context: {cluster: %[1]s, user: %[1]s}}]}`,
		strings.TrimSpace(string(name)), s.URL, strings.HasPrefix(s.URL, "https:"), user)))
	policy, simple := write(t, dir, "policy.yaml", labelPolicy), write(t, dir, "simple.yaml", simplePolicy)
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.NewReplacer("POLICY", policy, "SIMPLE", simple, "DIR", dir).Replace(args[i])
	}
	s.mu.Lock()
	s.requests, s.patched = nil, false
	s.mu.Unlock()
	defer klog.CaptureState().Restore()
	klog.SetLogger(logr.Discard()) // as Main does
	var out bytes.Buffer
	var errOut syncBuffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	code := plugin.Run(ctx, plugin.NewCommand("kubectl mutate", streams, nil), args, streams)
	s.mu.Lock()
	defer s.mu.Unlock()
	return serverRun{code, out.String(), errOut.String(), slices.Clone(s.requests)}
}

// syncBuffer is a buffer to which requests that run side by side may write, as they may to a file.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestCredentialsStay redirects a user who logs in in each way, to each place.
func TestCredentialsStay(t *testing.T) {
	away, connections := connectionCounter(t)
	location := ""
	var logins atomic.Int64
	s := &apiServer{}
	s.instead = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" || len(r.TLS.PeerCertificates) > 0 {
			logins.Add(1)
		}
		if r.URL.Path != "/api/v1/namespaces/default/configmaps" {
			return false
		}
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	defer s.Close()
	certificate, key := credentialsOf(t, s)
	script := write(t, t.TempDir(), "login", "#!/bin/sh\necho '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \"hidden\"}}'\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(away, "https://")
	for login, user := range map[string]string{
		"token":       "{token: hidden}",
		"password":    "{username: me, password: hidden}",
		"certificate": fmt.Sprintf("{client-certificate-data: %s, client-key-data: %s}", certificate, key),
		"exec":        fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}}", script),
		"token file":  fmt.Sprintf("{tokenFile: %q}", write(t, t.TempDir(), "token", "hidden")),
		"oidc":        fmt.Sprintf("{auth-provider: {name: oidc, config: {idp-issuer-url: %q, client-id: me, id-token: %q}}}", away, webToken("hidden", never)),
		"as another":  "{token: hidden, as: admin, as-groups: [hidden], as-uid: hidden}",
	} {
		for _, location = range []string{
			away, away + "/?hidden", "http://" + host, "//" + host + "/x", "https://me:hidden@" + host,
			strings.Replace(s.URL, "https://", "http://", 1), strings.Replace(s.URL, "127.0.0.1", "localhost", 1),
		} {
			logins.Store(0)
			got := runAgainst(t, s, user, []string{"preview", "-p", "POLICY"})
			if got.code != process.ExitNothing && got.code != process.ExitIncomplete || !strings.Contains(got.errOut, s.URL+" redirects a GET request") || strings.Contains(got.errOut, "hidden") {
				t.Errorf("%s to %s: exit code %d\n%s", login, location, got.code, got.errOut)
			}
			if logins.Load() == 0 {
				t.Errorf("%s: the server itself was sent no credentials", login)
			}
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections to the other server", n)
	}
}

// connectionCounter is a server that counts who connects to it.
func connectionCounter(t *testing.T) (address string, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, connections
}

// credentialsOf are a certificate and its key, for a kubeconfig.
func credentialsOf(t *testing.T, s *apiServer) (certificate, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE", s.Certificate().Raw), encode("PRIVATE KEY", der)
}
