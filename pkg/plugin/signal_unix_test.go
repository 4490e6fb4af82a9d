//go:build unix

package plugin_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// A signal ends the program also where nothing looks at the context.
func TestSignalsEndTheProgram(t *testing.T) {
	tier.NotShort(t)
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe") // nobody opens its other end
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	policy := write(t, dir, "policy.yaml", `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {data: {a: b}}}}]}}`)
	for name, c := range map[string]struct {
		args  []string
		stuck func(t *testing.T) // waits until the program is
	}{
		"a file that is never written":   {[]string{"preview", "-p", policy, "-f", pipe}, opened(pipe)},
		"a policy that is never written": {[]string{"preview", "-p", pipe, "-f", policy}, opened(pipe)},
		"discovery without an answer":    {[]string{"preview", "configmaps", "-p", policy}, nil},
		"completion without an answer":   {[]string{"__complete", "preview", "configmaps", ""}, nil},
		"permissions without an answer":  {[]string{"rbac", "-p", policy}, nil},
	} {
		for _, signals := range [][]syscall.Signal{{syscall.SIGTERM}, {syscall.SIGINT}, {syscall.SIGINT, syscall.SIGINT}} {
			t.Run(fmt.Sprint(name, " ", signals), func(t *testing.T) {
				args, stuck := c.args, c.stuck
				if stuck == nil {
					kubeconfig, asked := hangingServer(t)
					args, stuck = append([]string{"--kubeconfig", kubeconfig}, args...), asked
				}
				endsAt(t, args, stuck, signals)
			})
		}
	}
}

// opened returns a function that waits until a reader of a pipe is there.
func opened(pipe string) func(*testing.T) {
	return func(t *testing.T) {
		for range 600 {
			f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err == nil {
				t.Cleanup(func() { _ = f.Close() })
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatal("nobody reads the pipe")
	}
}

// endsAt starts the program, sends it signals when it is stuck, and checks how it ends.
func endsAt(t *testing.T, args []string, stuck func(*testing.T), signals []syscall.Signal) {
	t.Helper()
	c := exec.Command("kubectl-mutate", args...) // see TestMain
	c.Env = append(os.Environ(), "KUBECACHEDIR="+t.TempDir())
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() }) // where it has not ended
	stuck(t)
	for _, s := range signals {
		if err := c.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-ended: //nolint:errcheck // the exit code is looked at
	case <-time.After(20 * time.Second):
		t.Fatalf("it still runs 20 seconds after the last of %v", signals)
	}
	if code := c.ProcessState.ExitCode(); code != process.ExitInterrupted || !strings.Contains(output.String(), "error: interrupted") {
		t.Errorf("exit code %d, want %d, and an error:\n%s", code, process.ExitInterrupted, output.String())
	}
}

// hangingServer returns a kubeconfig for a server that answers nothing, and a function that
// waits until it is asked.
func hangingServer(t *testing.T) (kubeconfig string, asked func(*testing.T)) {
	t.Helper()
	requests := make(chan struct{}, 100)
	server := serve(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		requests <- struct{}{}
		<-r.Context().Done()
	})
	return write(t, t.TempDir(), "kubeconfig", kubeconfigFor(server)), func(t *testing.T) {
		select {
		case <-requests:
		case <-time.After(time.Minute):
			t.Fatal("the server was not asked")
		}
	}
}
