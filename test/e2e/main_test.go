package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-mutate/kubectl-mutate/test/e2e/internal/controlplane"
)

// server is the API server that all tests of this package share.
var server *apiServer

func TestMain(m *testing.M) {
	code, err := runTests(context.Background(), m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(ctx context.Context, m *testing.M) (code int, err error) {
	if pluginDir, err = os.MkdirTemp("", "e2e-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(pluginDir) //nolint:errcheck // nothing depends on it being gone
	if server, err = connect(ctx); err != nil {
		return 0, fmt.Errorf("no API server to test with: %w", err)
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		_ = server.stop() // ends the same way whether or not it could be cleaned up
		os.Exit(130)
	}()
	return m.Run(), nil
}

// apiServer is a cluster as its administrator sees it, no matter who started it.
type apiServer struct {
	config  *clientcmdapi.Config // one context, all keys inside
	kubectl string               // path of the program
	stop    func() error
}

// connect takes the cluster that E2E_KUBECONFIG names, or starts one.
func connect(ctx context.Context) (*apiServer, error) {
	if path := os.Getenv("E2E_KUBECONFIG"); path != "" {
		return connectTo(path)
	}
	assets, err := controlplane.Locate(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	plane, err := controlplane.Start(ctx, assets)
	if err != nil {
		return nil, err
	}
	return &apiServer{config: plane.Config(), kubectl: assets.Program("kubectl"), stop: plane.Stop}, nil
}

func connectTo(kubeconfig string) (*apiServer, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	kubectl, err := exec.LookPath("kubectl")
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		kubectl, err = controlplane.Assets(dir).Program("kubectl"), nil
	}
	if err != nil {
		return nil, err
	}
	return &apiServer{config: config, kubectl: kubectl, stop: func() error { return nil }}, nil
}

// restConfig is for tests that talk to the server themselves.
func restConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.NewDefaultClientConfig(*server.config.DeepCopy(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // tests in parallel share nothing that needs protection
	return config
}

// as is a kubeconfig of the given user, or of the administrator where user is
// empty, with a namespace as the current one.
func (s *apiServer) as(user, namespace string) *clientcmdapi.Config {
	config := s.config.DeepCopy()
	current := config.Contexts[config.CurrentContext]
	current.Namespace = namespace
	if user != "" {
		auth := config.AuthInfos[current.AuthInfo]
		auth.Impersonate, auth.ImpersonateGroups = user, []string{user + "s", "system:authenticated"}
	}
	return config
}

// buildPlugin puts kubectl-mutate into a directory that is fit for PATH.
func buildPlugin(dir string) error {
	built, err := builtPlugin()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "kubectl-mutate"), program, 0o755)
}

// builtPlugin compiles the program once; TestMain removes it.
var builtPlugin = sync.OnceValues(func() (string, error) {
	path := filepath.Join(pluginDir, "kubectl-mutate")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./cmd/kubectl-mutate") // version "dev"
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")       // as a release is built
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building kubectl-mutate: %w\n%s", err, out)
	}
	return path, nil
})

// pluginDir is where builtPlugin is.
var pluginDir string
