package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// moments are those between two requests of kubectl-mutate: before the first that is
// like this, or after it.
var moments = map[string]struct {
	like  func(*http.Request) bool
	after bool
}{
	"listing": {like: func(r *http.Request) bool { return r.Method == http.MethodGet && path.Base(r.URL.Path) == "configmaps" }, after: true},
	"review":  {like: func(r *http.Request) bool { return path.Base(r.URL.Path) == "selfsubjectaccessreviews" }}, // after the show
	"dry-run": {like: func(r *http.Request) bool { return r.Method == http.MethodPatch && r.URL.Query().Has("dryRun") }},
	"write":   {like: func(r *http.Request) bool { return r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") }},
}

// cmdMeanwhile makes something happen between two requests of kubectl-mutate:
// meanwhile listing|review|dry-run|write kubectl ARG...
func cmdMeanwhile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || moments[args[0]].like == nil || args[1] != "kubectl" {
		ts.Fatalf("usage: meanwhile listing|review|dry-run|write kubectl ARG...")
	}
	s := scriptOf(ts)
	home, dir := ts.Getenv("HOME"), ts.MkAbs(".")
	act := func() error {
		cmd := s.kubectlCommand(home, args[2:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	direct := filepath.Join(home, "KUBECONFIG")
	config, err := clientcmd.BuildConfigFromFlags("", direct)
	ts.Check(err)
	proxy, err := newInterloper(config, args[0], act)
	ts.Check(err)
	ts.Defer(proxy.Close)

	through, err := clientcmd.LoadFromFile(direct)
	ts.Check(err)
	for _, cluster := range through.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = proxy.URL, nil
	}
	file := filepath.Join(home, "through-proxy")
	ts.Check(clientcmd.WriteToFile(*through, file))
	ts.Setenv("KUBECONFIG", file)
}

// newInterloper is a proxy to the API server that calls act once, in a moment.
// Should act fail, its error is the answer to the request.
func newInterloper(config *rest.Config, moment string, act func() error) (*httptest.Server, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	acted := sync.OnceValue(act)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := moments[moment]
		if at.after {
			proxy.ServeHTTP(w, r)
		}
		if at.like(r) {
			if err := acted(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		if !at.after {
			proxy.ServeHTTP(w, r)
		}
	})), nil
}

// kubectlCommand is kubectl as the administrator, whichever user the script acts as,
// in the script's own namespace.
func (s *script) kubectlCommand(home string, args ...string) *exec.Cmd {
	cmd := exec.Command(server.kubectl, append([]string{"--namespace", s.namespaces[0]}, args...)...)
	cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "KUBECONFIG")}
	return cmd
}
