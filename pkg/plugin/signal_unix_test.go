//go:build unix

package plugin_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		"a write without an answer":      {[]string{"apply-existing", "configmaps", "-p", policy}, nil},
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

// Reports are written whole where nobody reads standard output, as with `| head`.
func TestReportsAreWholeWithoutAReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := write(t, dir, "policy.yaml", `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {data: {a: b}}}}]}}`)
	objects := write(t, dir, "objects.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: shop}}\n")
	for name, args := range map[string][]string{
		"preview":      {"preview", "-p", policy, "-f", objects, "--report"},
		"each at once": {"preview", "-p", policy, "-f", objects, "-o", "name", "--report"},
		"convert":      {"convert", "-p", policy, "-f", objects, "--report"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, written, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			_ = read.Close()
			file := filepath.Join(t.TempDir(), "report.md")
			c := exec.Command("kubectl-mutate", append(args, "markdown="+file)...) // see TestMain
			var errOut bytes.Buffer
			c.Stdout, c.Stderr = written, &errOut
			_ = c.Run()
			_ = written.Close()
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), "\n#") || strings.Contains(errOut.String(), "pipe") {
				t.Errorf("%v: %s\n%s\n%s", err, c.ProcessState, text, &errOut)
			}
		})
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
	want := "error: interrupted"
	if slices.Contains(args, "apply-existing") {
		want = "error: nothing was written: interrupted"
	}
	if code := c.ProcessState.ExitCode(); code != process.ExitInterrupted || !strings.Contains(output.String(), want) {
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
