package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
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

// Somebody edits an object between the evaluation of everything and the write: the others are written, and the change of this one is made of what
// it is then. That is so at first and after a change of the policies, for the object's own rules and for those that others trigger; and nothing is
// made twice.
func TestWatchGoesOnAfterADrift(t *testing.T) {
	t.Parallel()
	for name, triggered := range map[string]bool{"of an own rule": false, "of a trigger": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAppendingWatch(t)
			a.meddle = func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				a.edit("app-1", `{"data":{"log":"+"}}`)
				pass.ServeHTTP(w, r)
			}
			a.trigger("one")
			policy := func(text string) {
				if !triggered {
					a.appends(text)
					return
				}
				a.appendsToTargets(text)
			}
			policy("x")
			a.start("--concurrency=1")
			a.await("Watching ")
			a.becomes("=x +x =x")
			a.begun.Store(false)
			policy("y")
			a.becomes("=xy +y =xy")
			a.trigger("two") // is evaluated when all else is over
			a.becomes(map[bool]string{true: "=xyy +yy =xyy", false: "=xy +y =xy"}[triggered])
			if a.end(); a.cmd.ProcessState.ExitCode() != 3 { // it has told a drift
				t.Errorf("%v\n%s", a.cmd.ProcessState, a.said())
			}
		})
	}
}

// The same for an event: what it changes and somebody else edits meanwhile is made of what that is then, and of nothing else again.
func TestWatchTriesTheTargetOfAnEventAgain(t *testing.T) {
	t.Parallel()
	a := startAppendingWatch(t)
	a.meddle = func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		a.edit("app-1", `{"data":{"log":"+"}}`)
		pass.ServeHTTP(w, r)
	}
	a.start("--concurrency=1")
	a.await("Watching ")
	a.trigger("first")
	a.becomes("=x +x =x")
	a.trigger("second")
	a.becomes("=xx +xx =xx")
	a.end()
}

// appendsToTargets makes the policy one that appends a character to each object whenever a trigger is evaluated.
func (a *appendingWatch) appendsToTargets(text string) {
	a.t.Helper()
	all := strings.NewReplacer("mutateExistingOnPolicyUpdate: false", "mutateExistingOnPolicyUpdate: true", ", operations: [CREATE]", "", "}}x", "}}"+text).Replace(appendingPolicy)
	check(a.t, os.WriteFile(filepath.Join(a.dir, "append.yaml"), []byte(all), 0o600))
}

// The server goes away when a part of everything is written: the rest is made when it is back, and nothing twice.
func TestWatchMakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	a := startAppendingWatch(t)
	a.meddle = func(http.ResponseWriter, *http.Request, http.Handler) {
		a.away.Store(true)
		abort()
	}
	a.trigger("one")
	a.appendsToTargets("x")
	a.start("--concurrency=1")
	a.await("the outcome of some writes is unknown; looking it up again")
	if got := a.logs(); got != "=x = =" {
		t.Errorf("got %s", got)
	}
	a.away.Store(false)
	a.await("Watching ")
	a.becomes("=x =x =x")
	a.end()
}

// An object that the server refuses to change does not keep the others from being written, at first, after a change of the policies, and in an event.
func TestWatchGoesOnAfterARefusal(t *testing.T) {
	t.Parallel()
	a := startAppendingWatch(t)
	a.meddle = func(w http.ResponseWriter, r *http.Request, pass http.Handler) { pass.ServeHTTP(w, r) }
	a.edit("app-0", `{"immutable":true}`)
	a.appends("x")
	a.start("--concurrency=1")
	a.becomes("= =x =x")
	a.await("Watching ")
	a.appends("y")
	a.becomes("= =xy =xy")
	a.edit("app-0", `{"metadata":{"labels":{"edited":"yes"}}}`)
	a.edit("app-2", `{"data":{"log":"+"}}`)
	a.becomes("= =xy +y")
	if a.end(); a.cmd.ProcessState.ExitCode() != 3 || strings.Contains(a.said(), "nothing was written") {
		t.Errorf("%v\n%s", a.cmd.ProcessState, a.said())
	}
}

// appendingPolicy appends a character to other objects for each trigger that is made: what is made twice stays to be seen.
const appendingPolicy = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: append}, spec: {mutateExistingOnPolicyUpdate: false, rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap], names: ["settings-*"], operations: [CREATE]}}]},
	mutate: {targets: [{apiVersion: v1, kind: ConfigMap, namespace: shop, name: "app-*"}], patchStrategicMerge: {data: {log: "{{ target.data.log }}x"}}}}]}}`

// appendingWatch is a watch that writes through a proxy, on an API server with the objects of appendingPolicy.
type appendingWatch struct {
	*clusters
	t       *testing.T
	program string
	cmd     *exec.Cmd
	// meddle is called with the first write of app-1; it passes it on or not.
	meddle func(w http.ResponseWriter, r *http.Request, pass http.Handler)
	away   atomic.Bool
	begun  atomic.Bool
}

// abort ends a request without an answer.
func abort() { panic(http.ErrAbortHandler) }

func startAppendingWatch(t *testing.T) *appendingWatch {
	t.Helper()
	a := &appendingWatch{clusters: startClusters(t, "one"), t: t, program: programOf(t)}
	a.create(t, "one", fleetObject("Namespace", "shop", nil))
	for i := range 3 {
		a.create(t, "one", fleetObject("ConfigMap", fmt.Sprintf("app-%d", i), map[string]any{"data": map[string]any{"log": "="}}))
	}
	a.through(t, "proxy", "one", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		writes := r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") && path.Base(r.URL.Path) == "app-1"
		switch {
		case a.away.Load():
			abort()
		case writes && a.begun.CompareAndSwap(false, true):
			a.meddle(w, r, pass)
		default:
			pass.ServeHTTP(w, r)
		}
	})
	check(t, os.WriteFile(filepath.Join(a.dir, "append.yaml"), []byte(appendingPolicy), 0o600))
	return a
}

// watch starts the watch, and waits until it watches.
func (a *appendingWatch) watch() {
	a.t.Helper()
	a.start()
	a.await("Watching ")
}

// start starts the watch, with more arguments.
func (a *appendingWatch) start(arguments ...string) {
	a.t.Helper()
	command, _, _ := a.command(a.t, a.program)
	a.cmd = exec.Command(a.program, append([]string{"apply-existing", "-n", "shop", "-p", "append.yaml", "--context", "proxy", "--watch", "--yes"}, arguments...)...)
	out, err := os.Create(filepath.Join(a.dir, "out"))
	check(a.t, err)
	a.cmd.Dir, a.cmd.Env, a.cmd.Stdout, a.cmd.Stderr = command.Dir, command.Env, out, out
	check(a.t, a.cmd.Start())
	a.t.Cleanup(func() { _ = a.cmd.Process.Kill() })
}

func (a *appendingWatch) said() string {
	text, _ := os.ReadFile(filepath.Join(a.dir, "out"))
	return string(text)
}

func (a *appendingWatch) await(text string) {
	a.t.Helper()
	eventually(a.t, a.said, func() bool { return strings.Contains(a.said(), text) })
}

// appends makes the policy one that appends a character to each object that does not end in it.
func (a *appendingWatch) appends(text string) {
	a.t.Helper()
	all := strings.Replace(fleetPolicy, "{level: info}", `{log: "{{ request.object.data.log }}`+text+`"}`, 1)
	check(a.t, os.WriteFile(filepath.Join(a.dir, "append.yaml"), []byte(strings.Replace(all, "mutate:", `preconditions: {all: [{key: "{{ request.object.data.log }}", operator: NotEquals, value: "*`+text+`"}]}, mutate:`, 1)), 0o600))
}

// edit is what somebody else does to an object.
func (a *appendingWatch) edit(name, patch string) {
	a.t.Helper()
	client, err := dynamic.NewForConfig(a.client(a.t, "one"))
	check(a.t, err)
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("shop").Patch(a.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	check(a.t, err)
}

// trigger makes a trigger.
func (a *appendingWatch) trigger(name string) {
	a.t.Helper()
	a.create(a.t, "one", fleetObject("ConfigMap", "settings-"+name, nil))
}

// logs are what was appended to each object.
func (a *appendingWatch) logs() string {
	a.t.Helper()
	client, err := dynamic.NewForConfig(a.client(a.t, "one"))
	check(a.t, err)
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("shop").List(a.t.Context(), metav1.ListOptions{})
	check(a.t, err)
	var out []string
	for i := range list.Items {
		if u := &list.Items[i]; strings.HasPrefix(u.GetName(), "app-") {
			data, _ := u.Object["data"].(map[string]any)
			out = append(out, fmt.Sprint(data["log"]))
		}
	}
	return strings.Join(out, " ")
}

func (a *appendingWatch) becomes(want string) {
	a.t.Helper()
	eventually(a.t, func() string { return a.logs() + "\n" + a.said() }, func() bool { return a.logs() == want })
}

// end sends SIGTERM.
func (a *appendingWatch) end() {
	a.t.Helper()
	check(a.t, a.cmd.Process.Signal(syscall.SIGTERM))
	_ = a.cmd.Wait() // the code says how
}

// follow runs another command on the same cluster.
func (a *appendingWatch) follow(command ...string) string {
	a.t.Helper()
	code, out, errOut := a.run(a.t, a.program, append(command, "--context", "proxy")...)
	if code != 0 {
		a.t.Errorf("%v: exit code %d\n%s\n%s", command, code, out, errOut)
	}
	return out + errOut
}

// The server goes away in the middle of a write, for longer than that is tried again: whether it was stored or not, what each
// trigger changes is made once on each object.
func TestWatchOutlastsTheAbsenceOfTheServer(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{"the write is stored": true, "the write is lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAppendingWatch(t)
			a.meddle = func(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
				if a.away.Store(true); stored {
					pass.ServeHTTP(&discarded{header: http.Header{}}, r)
				}
				abort()
			}
			a.watch()
			a.trigger("first")
			a.await("the outcome of some writes is unknown; looking it up again")
			if got, want := a.logs(), map[bool]string{true: "=x", false: "="}[stored]; strings.Fields(got)[1] != want {
				t.Errorf("got %s, want %s for app-1", got, want)
			}
			a.away.Store(false)
			a.becomes("=x =x =x")
			a.trigger("second")
			a.becomes("=xx =xx =xx")
			if a.end(); a.cmd.ProcessState.ExitCode() != 3 { // it has told an error
				t.Errorf("%v\n%s", a.cmd.ProcessState, a.said())
			}
		})
	}
}

// SIGTERM while a write is in flight.
func TestWatchIsEndedInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	t.Run("whose answer comes", func(t *testing.T) {
		t.Parallel()
		a := startAppendingWatch(t)
		inFlight, interrupted := make(chan struct{}), make(chan struct{})
		a.meddle = func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			close(inFlight)
			held(r, interrupted)
			pass.ServeHTTP(w, r)
		}
		a.watch()
		a.trigger("first")
		<-inFlight
		check(t, a.cmd.Process.Signal(syscall.SIGTERM))
		a.await("waiting for the requests in flight")
		close(interrupted)
		_ = a.cmd.Wait() // the code says how
		if !strings.Contains(a.said(), "configmap/app-1 ") || strings.Fields(a.logs())[1] != "=x" {
			t.Errorf("%v, %s\n%s", a.cmd.ProcessState, a.logs(), a.said())
		}
		if runs := a.follow("history", "-o", "yaml"); !strings.Contains(runs, "inDoubt: 0") {
			t.Errorf("the journal has\n%s", runs)
		}
		a.follow("undo", "latest", "--yes")
		a.becomes("= = =")
	})
	t.Run("whose answer is lost", func(t *testing.T) {
		t.Parallel()
		a := startAppendingWatch(t)
		inFlight, interrupted := make(chan struct{}), make(chan struct{})
		a.meddle = func(_ http.ResponseWriter, r *http.Request, pass http.Handler) {
			pass.ServeHTTP(&discarded{header: http.Header{}}, r)
			close(inFlight)
			held(r, interrupted)
			a.away.Store(true)
			abort()
		}
		a.watch()
		a.trigger("first")
		<-inFlight
		a.becomes("=x =x =x") // the other writes are over
		check(t, a.cmd.Process.Signal(syscall.SIGTERM))
		a.await("waiting for the requests in flight")
		close(interrupted)
		_ = a.cmd.Wait() // the code says how
		if !strings.Contains(a.said(), "--resume ") {
			t.Errorf("%v\n%s", a.cmd.ProcessState, a.said())
		}
		a.away.Store(false)
		a.follow("apply-existing", "--resume", "latest")
		a.becomes("=x =x =x")
	})
}

// held waits, for as long as there is somebody who waits for the answer.
func held(r *http.Request, until <-chan struct{}) {
	select {
	case <-until:
	case <-r.Context().Done():
	}
}

// discarded is an answer that nobody gets.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}

// The server goes away while everything is evaluated, at first and after a change of the policies: that begins anew, and nothing is
// made twice.
func TestWatchBeginsAnewAfterTheAbsenceOfTheServer(t *testing.T) {
	t.Parallel()
	a := startAppendingWatch(t)
	var listed atomic.Int32
	a.meddle = func(w http.ResponseWriter, r *http.Request, pass http.Handler) { pass.ServeHTTP(w, r) }
	a.through(t, "proxy", "one", func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method == http.MethodPatch && r.URL.Query().Has("dryRun") && listed.Add(1) == 1 {
			a.away.Store(true) // it is watched, listed and evaluated, and nothing is written
		}
		if a.away.Load() {
			abort()
		}
		pass.ServeHTTP(w, r)
	})
	a.appends("x")
	a.start()
	a.await("not everything was evaluated, trying again")
	a.away.Store(false)
	a.becomes("=x =x =x")
	a.away.Store(true)
	a.appends("y")
	a.await("the previous policies stay in use")
	a.away.Store(false)
	a.becomes("=xy =xy =xy")
	a.end()
}
