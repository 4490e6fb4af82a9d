package plugin_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // as the program has it

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// webToken is a JSON Web Token that expires at a time in Unix seconds.
func webToken(name string, expiry int64) string {
	claims := fmt.Sprintf(`{"sub": %q, "exp": %d}`, name, expiry)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".hidden"
}

const never = 1 << 40 // in Unix seconds

// issuer is an identity provider, with the number of tokens that it made.
func issuer(t *testing.T) (server *httptest.Server, made *atomic.Int64) {
	t.Helper()
	made = &atomic.Int64{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/realm/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"token_endpoint": "https://%s/token"}`, r.Host)
		case r.URL.Path == "/token" && r.Method == http.MethodPost && r.FormValue("refresh_token") == "hidden-refresh":
			made.Add(1)
			fmt.Fprintf(w, `{"access_token": "a", "token_type": "bearer", "refresh_token": "hidden-next", "id_token": %q}`, webToken("new", never))
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	server = httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	return server, made
}

func oidcUser(s *httptest.Server, idToken string) string {
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return fmt.Sprintf(`{auth-provider: {name: oidc, config: {idp-issuer-url: %q, client-id: me, client-secret: hidden-secret, id-token: %q, refresh-token: hidden-refresh, idp-certificate-authority-data: %s}}}`,
		s.URL+"/realm", idToken, authority)
}

func TestIDTokensAreRefreshedOnce(t *testing.T) {
	var old atomic.Int64
	for name, c := range map[string]struct {
		token string
		made  int64
	}{"valid": {webToken("new", never), 0}, "expired": {webToken("old", 1), 1}, "missing": {"", 1}} {
		provider, made := issuer(t) // client-go keeps a login for each
		s := &apiServer{}
		s.instead = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Authorization") != "Bearer "+webToken("new", never) {
				old.Add(1)
			}
			return false
		}
		s.Server = httptest.NewTLSServer(s)
		got := runAgainst(t, s, oidcUser(provider, c.token), []string{"preview", "-p", "POLICY"})
		s.Close()
		if got.code != process.ExitChanges || made.Load() != c.made || old.Load() != 0 {
			t.Errorf("%s: exit code %d, %d refreshes, %d requests with another token\n%s", name, got.code, made.Load(), old.Load(), got.errOut)
		}
		stored, err := os.ReadFile(os.Getenv("KUBECONFIG"))
		if err != nil || strings.Contains(string(stored), "hidden-next") != (c.made > 0) || !strings.Contains(string(stored), "idp-certificate-authority-data") {
			t.Errorf("%s: %v, the kubeconfig has %d bytes", name, err, len(stored))
		}
	}
}

// TestPasswordsOfURLsAreNotShown has URLs of a kubeconfig hold passwords, in the server's and in the proxy's,
// which are valid or not.
func TestPasswordsOfURLsAreNotShown(t *testing.T) {
	s := &apiServer{}
	var asked atomic.Bool
	s.instead = func(_ http.ResponseWriter, r *http.Request) bool {
		if _, password, _ := r.BasicAuth(); password == "hidden" {
			asked.Store(true)
		}
		return false
	}
	s.Server = httptest.NewServer(s)
	defer s.Close()
	dir := t.TempDir()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	policy, host := write(t, dir, "policy.yaml", labelPolicy), strings.TrimPrefix(s.URL, "http://")
	for cluster, valid := range map[string]bool{
		fmt.Sprintf("{server: %q}", "http://me:hidden@"+host):                       true,
		fmt.Sprintf("{server: %q}", "me:hidden@"+host):                              true,
		`{server: "http://me:hidden@%zz"}`:                                          false,
		`{server: "http://me@corp:hidden@%zz"}`:                                     false,
		fmt.Sprintf("{server: %q, proxy-url: %q}", s.URL, "socks9://me:hidden@x"):   false,
		fmt.Sprintf("{server: %q, proxy-url: %q}", s.URL, "http://me:hidden@ x%zz"): false,
	} {
		t.Setenv("KUBECONFIG", write(t, dir, "kubeconfig", fmt.Sprintf(
			"{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: %s}], contexts: [{name: c, context: {cluster: c}}]}", cluster)))
		saved, record := filepath.Join(dir, "plan"), filepath.Join(dir, "journal")
		for _, args := range [][]string{
			{"preview", "-p", policy, "--save", saved, "-v=9"},
			{"preview", "-p", policy, "-o", "json"},
			{"preview", "-p", policy, "--contexts=c", "-o", "json"},
			{"apply-existing", "-p", policy, "--yes", "--annotate=false", "--journal", record},
		} {
			code, out, text := runCommand(t, args...)
			files, _ := os.ReadFile(saved)
			more, _ := os.ReadFile(record)
			if strings.Contains(out+text+string(files)+string(more), "hidden") || (code == process.ExitNothing) == valid {
				t.Errorf("%s, %s: exit code %d\n%s\n%s%s", cluster, args[0], code, out+text, files, more)
			}
		}
		_ = os.Remove(saved)
		_ = os.Remove(record)
	}
	if !asked.Load() {
		t.Error("the password was never sent")
	}
}

// TestLibrariesFetchNothing has kustomize fetch a file, with a client of its own.
func TestLibrariesFetchNothing(t *testing.T) {
	away, connections := connectionCounter(t)
	dir := t.TempDir()
	policy := write(t, t.TempDir(), "policy.yaml", labelPolicy)
	write(t, dir, "object.yaml", liveConfigMap)
	for name, texts := range map[string][2]string{ // kustomization.yaml, other.yaml
		"patches":             {"patches: [{path: AWAY}]", ""},
		"replacements":        {"replacements: [{path: AWAY}]", ""},
		"crds":                {"crds: [AWAY]", ""},
		"configurations":      {"configurations: [AWAY]", ""},
		"openapi":             {"openapi: {path: AWAY}", ""},
		"files of a map":      {"configMapGenerator: [{name: a, files: [k=AWAY]}]", ""},
		"lines of a map":      {"secretGenerator: [{name: a, envs: [AWAY]}]", ""},
		"a transformer":       {"transformers: [other.yaml]", "{apiVersion: builtin, kind: PatchTransformer, metadata: {name: a}, path: AWAY}"},
		"a generator":         {"generators: [other.yaml]", "{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: a}, files: [k=AWAY]}"},
		"an inline generator": {"generators: [\"{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: a}, files: [k=AWAY]}\"]", ""},
	} {
		write(t, dir, "kustomization.yaml", "resources: [object.yaml]\n"+strings.ReplaceAll(texts[0], "AWAY", away+"/x"))
		write(t, dir, "other.yaml", strings.ReplaceAll(texts[1], "AWAY", away+"/x"))
		out, err := exec.CommandContext(t.Context(), "kubectl-mutate", "preview", "-p", policy, "-k", filepath.Clean(dir)).CombinedOutput() // see TestMain
		if err == nil || !strings.Contains(string(out), " request to "+away+" is not sent") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections to the other server", n)
	}
}
