package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
	"github.com/kubectl-mutate/kubectl-mutate/test/e2e/internal/faultproxy"
)

// proofRun is one run: a namespace with its objects, and a proxy.
type proofRun struct {
	*proof
	seed      uint64
	random    *rand.Rand
	namespace string
	proxy     *faultproxy.Proxy
	home      string // with a kubeconfig that leads to the proxy
	before    contents
	others    *others
	file      string // journal of the apply
	starts    int
	output    strings.Builder // of the plugin, in this stage
}

func (p *proof) newRun(t *testing.T, seed uint64, o faultproxy.Options) *proofRun {
	t.Helper()
	r := &proofRun{proof: p, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), namespace: newNamespace(t), home: t.TempDir()}
	r.others = newOthers(r)
	for _, object := range p.objects {
		u := object.DeepCopy()
		u.SetNamespace(r.namespace)
		_, err := p.resource(engine.KeyOf(u)).Create(p.ctx, u, metav1.CreateOptions{FieldManager: creator})
		check(t, err)
	}
	r.before = r.contents(t)
	var err error
	r.proxy, err = faultproxy.New(restConfig(t), o)
	check(t, err)
	t.Cleanup(r.proxy.Close)
	config := server.as("", r.namespace)
	r.proxy.Route(config)
	check(t, clientcmd.WriteToFile(*config, filepath.Join(r.home, "kubeconfig")))
	return r
}

// contents reads the run's objects from the server itself.
func (r *proofRun) contents(t *testing.T) contents {
	t.Helper()
	out := contents{}
	for _, object := range r.objects {
		u := r.get(t, object)
		content := withoutOwners(u)
		metadata := content["metadata"].(map[string]any)
		for _, field := range []string{"uid", "creationTimestamp", "namespace"} {
			delete(metadata, field)
		}
		out[u.GetName()] = content
	}
	return out
}

func (r *proofRun) get(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	key := engine.KeyOf(object)
	key.Namespace = r.namespace
	u, err := r.resource(key).Get(r.ctx, key.Name, metav1.GetOptions{})
	check(t, err)
	return u
}

// ended is how a process of the plugin ended.
type ended struct {
	code   int
	killed bool
	output string
}

// brokenOff reports whether the plugin stopped before it had reached every object.
func (e ended) brokenOff() bool {
	return strings.HasPrefix(e.output, "error: ") || strings.Contains(e.output, "\nerror: ")
}

// start runs the plugin, and kills it at one of its requests; with 0 it is not killed.
func (r *proofRun) start(t *testing.T, kill int, arguments ...string) ended {
	t.Helper()
	var output bytes.Buffer
	started := time.Now()
	cmd := exec.Command(r.program, arguments...)
	cmd.Env = []string{"HOME=" + r.home, "KUBECONFIG=" + filepath.Join(r.home, "kubeconfig"), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = &output, &output
	check(t, cmd.Start())
	var killed atomic.Bool
	if kill > 0 {
		r.proxy.CallAt(kill, func() { killed.Store(cmd.Process.Kill() == nil) })
	}
	err := cmd.Wait()
	r.proxy.CallAt(0, nil)
	r.proxy.Settle()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	e := ended{code: cmd.ProcessState.ExitCode(), killed: killed.Load(), output: output.String()}
	r.output.WriteString(e.output)
	r.starts++
	t.Logf("%s\n%s, kill at request %d: %t, exit code %d, %d requests so far\n%s", strings.Join(arguments, " "),
		time.Since(started).Round(time.Millisecond), kill, e.killed, e.code, r.proxy.Requests(), e.output)
	return e
}

// prove is one run of the proof.
func (p *proof) prove(t *testing.T, seed uint64) {
	r := p.newRun(t, seed, faultproxy.Options{Seed: seed, Rates: faults, TLS: seed%2 == 0})
	r.apply(t)
	r.compare(t, "applied", r.others.over(p.wanted, r.before))
	r.checkStored(t, manager, 0)

	written := len(r.proxy.Writes())
	r.output.Reset()
	r.undo(t)
	r.compare(t, "undone", r.others.over(r.before, r.before))
	r.checkStored(t, manager+"-undo", written)
	r.checkReleased(t)

	p.count("runs", 1)
	p.count("starts", r.starts)
	p.count("requests", r.proxy.Requests())
	for fault, n := range r.proxy.Injected() {
		p.count(string(fault), n)
	}
}

// maxStarts is more than any run needs: one in twenty requests that a start begins
// with breaks it off, and it is killed a few times.
const maxStarts = 40

// untilDone starts the plugin, and kills it a few times, until it is done.
func (r *proofRun) untilDone(t *testing.T, start func(kill int) (e ended, done bool)) ended {
	t.Helper()
	kills := 1 + r.random.IntN(3)
	for range maxStarts {
		kill := 0
		if kills > 0 {
			kill = 1 + r.random.IntN(r.requests)
		}
		e, done := start(kill)
		switch {
		case e.killed:
			kills--
			r.count("kills", 1)
		case done:
			return e
		default:
			r.count("broken off", 1)
		}
	}
	t.Fatalf("seed %d: not done after %d starts", r.seed, maxStarts)
	return ended{}
}

func writeArguments(arguments ...string) []string {
	return append(arguments, "--yes", "--concurrency", "8", "--on-error", "continue")
}

func (r *proofRun) applyArguments() []string {
	return writeArguments("apply-existing", "-p", r.policies, "--max-changes", "0", "--journal-secrets", "--journal", r.newFile())
}

func (r *proofRun) newFile() string {
	r.file = filepath.Join(r.home, fmt.Sprintf("journal-%d.jsonl", r.starts))
	return r.file
}

// apply begins the run, and resumes it once there is something to go on with.
func (r *proofRun) apply(t *testing.T) {
	t.Helper()
	begun := false
	last := r.untilDone(t, func(kill int) (ended, bool) {
		if !begun {
			e := r.start(t, kill, r.applyArguments()...)
			j := r.readJournal(t, r.file)
			if begun = j != nil && j.Begun; begun {
				r.others.meddle(t)
			}
			return e, begun && done(j)
		}
		e := r.start(t, kill, writeArguments("apply-existing", "--resume", r.file)...)
		return e, !e.brokenOff() && done(r.readJournal(t, r.file))
	})
	r.others.checkReported(t, last.code, `%[1]s (drifted|.* Failed)|Failed earlier: .*/%[1]s: `)
}

// undo takes the run back. What was taken back before a kill needs no more.
func (r *proofRun) undo(t *testing.T) {
	t.Helper()
	r.others.meddleAgain(t)
	applied := r.file
	last := r.untilDone(t, func(kill int) (ended, bool) {
		e := r.start(t, kill, writeArguments("undo", applied, "--max-changes", "0", "--journal-secrets", "--journal", r.newFile())...)
		return e, !e.brokenOff()
	})
	r.others.checkReported(t, last.code, `/%s\b(.*\n){1,25}?.* not put back`)
}

func (r *proofRun) readJournal(t *testing.T, file string) *journal.Journal {
	t.Helper()
	j, err := journal.Read(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	check(t, err)
	return j
}

// done reports whether nothing is left to do.
func done(j *journal.Journal) bool {
	n := j.Count()
	return n[journal.Planned]+n[journal.InDoubt]+n[journal.Partial] == 0
}

// compare holds the objects against what they should be.
func (r *proofRun) compare(t *testing.T, when string, want contents) {
	t.Helper()
	got := r.contents(t)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if d := cmp.Diff(want[name], got[name]); d != "" {
			r.count("lost", 1)
			t.Errorf("seed %d, %s: %s is another object than it should be (-want +got):\n%s", r.seed, when, name, d)
		}
	}
}

// checkStored demands that the server stored one change of each object by a
// manager since a number of writes, but none of those that others were faster with.
func (r *proofRun) checkStored(t *testing.T, manager string, since int) {
	t.Helper()
	for name := range r.before {
		want := 1
		if r.others.kept[name] {
			want = 0
		}
		n := r.stored(name, manager, since)
		r.count("writes", n)
		switch {
		case n > want:
			r.count("doubled", n-want)
			t.Errorf("seed %d: %s was changed %d times by %s, want %d\n%s", r.seed, name, n, manager, want, r.story(t, name))
		case n < want:
			r.count("lost", 1)
			t.Errorf("seed %d: %s was never changed by %s\n%s", r.seed, name, manager, r.story(t, name))
		}
	}
}

// stored counts the states of an object that a manager's requests led to: a
// request that changes nothing is answered with a state that is there already.
func (r *proofRun) stored(name, manager string, since int) int {
	states := map[string]bool{}
	for _, w := range r.proxy.Writes()[since:] {
		if path.Base(w.Path) == name && w.Manager == manager && !w.DryRun && w.Status == http.StatusOK {
			states[w.ResourceVersion] = true
		}
	}
	for _, v := range r.others.versions {
		delete(states, v)
	}
	return len(states)
}

// checkReleased demands that the plugin does not own what it has taken back.
func (r *proofRun) checkReleased(t *testing.T) {
	t.Helper()
	for _, object := range r.objects {
		for _, e := range r.get(t, object).GetManagedFields() {
			if e.Manager == manager {
				t.Errorf("seed %d: %s still belongs to %s (%s): %s", r.seed, object.GetName(), e.Manager, e.Operation, e.FieldsV1)
			}
		}
	}
}

// story returns what reached the server about an object, and what the journals say.
func (r *proofRun) story(t *testing.T, name string) string {
	t.Helper()
	var b strings.Builder
	for _, w := range r.proxy.Writes() {
		if path.Base(w.Path) == name {
			fmt.Fprintf(&b, "%+v\n", w)
		}
	}
	fmt.Fprintf(&b, "others wrote the versions %s\n", strings.Join(r.others.versions, " "))
	files, err := filepath.Glob(filepath.Join(r.home, "journal-*.jsonl"))
	check(t, err)
	for _, file := range files {
		for _, e := range r.readJournal(t, file).Entries {
			if e.Object.Name != name {
				continue
			}
			fmt.Fprintf(&b, "%s: planned for %s\n", filepath.Base(file), e.ResourceVersion)
			for _, a := range e.Attempts {
				fmt.Fprintf(&b, "  attempt on %s, %s\n", a.ResourceVersion, a.Time)
			}
			for _, result := range e.Results {
				fmt.Fprintf(&b, "  %s %s %s, %s\n", result.Outcome, result.ResourceVersion, result.Error, result.Time)
			}
		}
	}
	return b.String()
}
