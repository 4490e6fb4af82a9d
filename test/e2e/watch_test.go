package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// background is a program that runs beside a script.
type background struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// patience is how long a script waits for what has to come.
const patience = time.Minute

// cmdStart starts a program beside the script: start FILE PROGRAM ARG... Both of its outputs go to the file.
func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if neg || len(args) < 2 || s.background != nil {
		ts.Fatalf("usage: start FILE PROGRAM ARG..., once before end")
	}
	out, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	program := args[1]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			program = filepath.Join(dir, program)
			break
		}
	}
	cmd := exec.Command(program, args[2:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), out, out
	for _, name := range []string{"HOME", "PATH", "KUBECONFIG", "XDG_STATE_HOME", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	b := &background{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the code says how it ended
		_ = out.Close()
		close(b.done)
	}()
	s.background = b
	ts.Defer(func() { _ = cmd.Process.Kill() })
}

// cmdAwait waits until a file has a text: await FILE REGEXP.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE REGEXP")
	}
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		ts.Check(err)
		if want.Match(text) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("there is no %s in %s:\n%s", args[1], args[0], text)
		}
	}
}

// cmdBecomes waits until a field on the server has a value: becomes TYPE/NAME JSONPATH VALUE.
func cmdBecomes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: becomes TYPE/NAME JSONPATH VALUE")
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		got := scriptOf(ts).kubectl(ts, "get", args[0], "-o", "jsonpath="+args[1])
		if got == args[2] {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s of %s is %q, want %q", args[1], args[0], got, args[2])
		}
	}
}

// metricsAt is where a program says that it serves its metrics.
var metricsAt = regexp.MustCompile(`(?m)^Metrics: (http://127\.0\.0\.1:\d+)/metrics$`)

// cmdServes waits until what start has started answers a path with a text: serves FILE PATH CODE REGEXP.
func cmdServes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: serves FILE PATH CODE REGEXP")
	}
	want, err := regexp.Compile("(?m)" + args[3])
	ts.Check(err)
	got := ""
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		ts.Check(err)
		if at := metricsAt.FindSubmatch(text); at != nil {
			answer, err := http.Get(string(at[1]) + args[1])
			ts.Check(err)
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close() // it was read
			ts.Check(err)
			if got = fmt.Sprintf("%d\n%s", answer.StatusCode, body); strconv.Itoa(answer.StatusCode) == args[2] && want.Match(body) {
				return
			}
		}
		if time.Now().After(end) {
			ts.Fatalf("%s is never %s with %s, but %s\n%s", args[1], args[2], args[3], got, text)
		}
	}
}

// cmdEnd sends SIGTERM to what start has started, and demands its exit code: end CODE.
func cmdEnd(ts *testscript.TestScript, neg bool, args []string) {
	s := scriptOf(ts)
	if neg || len(args) != 1 || s.background == nil {
		ts.Fatalf("usage: end CODE, after start")
	}
	b := s.background
	s.background = nil
	_ = b.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-b.done: // the code says how
	case <-time.After(patience):
		ts.Fatalf("it does not end")
	}
	if code := b.cmd.ProcessState.ExitCode(); args[0] != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}
