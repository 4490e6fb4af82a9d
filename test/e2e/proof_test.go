package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/journal"
	"github.com/kubectl-mutate/kubectl-mutate/test/e2e/internal/faultproxy"
)

// allProofRuns are enough for each fault to occur.
const allProofRuns = 20

var proofRuns = flag.Int("proof-runs", tier.Pick(4, allProofRuns), "how many runs TestProof makes, each with a seed of its own")

// TestProof is the proof that an apply can be trusted. Each of its runs has the
// plugin write some objects through a proxy that breaks connections, refuses and
// delays requests, loses answers and reads stale objects, and kills the plugin at
// some of its requests; then the plugin resumes from its journal until it is
// done. Others write the objects meanwhile. In the end
//
//   - every object is as after a run without faults, but for what others changed;
//   - the server has stored one change of each object, and no second one;
//   - what others changed in the fields of a change is reported, and not overwritten.
//
// Then `undo` takes the run back, through the same faults and others, after which
// every object is as it was in the beginning, but for what others changed.
//
// A failure names a seed, which -seed replays.
func TestProof(t *testing.T) {
	p := newProof(t)
	p.refer(t)
	seeds := make([]uint64, *proofRuns)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	if *onlySeed != 0 {
		seeds = []uint64{*onlySeed}
	}
	started := time.Now()
	t.Run("seed", func(t *testing.T) {
		for _, n := range seeds {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				p.prove(t, n)
			})
		}
	})
	t.Logf("%d runs in %s: %s", len(seeds), time.Since(started).Round(time.Second), counts(p.figures))
	if len(seeds) < allProofRuns {
		return
	}
	// A proof without faults proves nothing.
	for _, what := range []string{
		"kills", string(faultproxy.CutBefore), string(faultproxy.CutAfter), string(faultproxy.CutShort),
		string(faultproxy.TooManyRequests), string(faultproxy.InternalError), string(faultproxy.Unavailable),
		string(faultproxy.TimeoutAfter), string(faultproxy.Latency), string(faultproxy.Stale),
	} {
		if p.figures[what] == 0 {
			t.Errorf("no %s in %d runs", what, len(seeds))
		}
	}
}

// The objects of each run, by the section of testdata/proof/proof.txtar that they
// are made from.
var proofObjects = map[string]int{"settings": 6, "odd": 4, "web": 3, "api": 3, "token": 3, "gear": 3}

// faults are many: of a hundred requests, thirty suffer.
var faults = []faultproxy.Rate{
	{Fault: faultproxy.CutBefore, PerMille: 30},
	{Fault: faultproxy.CutAfter, PerMille: 40},
	{Fault: faultproxy.CutShort, PerMille: 20},
	{Fault: faultproxy.TooManyRequests, PerMille: 6},
	{Fault: faultproxy.InternalError, PerMille: 15},
	{Fault: faultproxy.Unavailable, PerMille: 15},
	{Fault: faultproxy.TimeoutAfter, PerMille: 6},
	{Fault: faultproxy.Latency, PerMille: 70},
	{Fault: faultproxy.Stale, PerMille: 100},
}

// proof is what the runs share.
type proof struct {
	*writePath
	program, policies string // files
	objects           []*unstructured.Unstructured
	// wanted is what a run without faults makes of the objects, and requests how
	// many requests it needs.
	wanted   contents
	requests int

	mu      sync.Mutex
	figures map[string]int
}

// contents are objects by name, without what the server keeps books in.
type contents map[string]map[string]any

func newProof(t *testing.T) *proof {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "proof", "proof.txtar"))
	check(t, err)
	dir := t.TempDir()
	check(t, buildPlugin(dir))
	p := &proof{
		writePath: newWritePath(t), figures: map[string]int{},
		program: filepath.Join(dir, "kubectl-mutate"), policies: filepath.Join(dir, "policies.yaml"),
	}
	for _, f := range archive.Files {
		p.writePath.objects[f.Name] = string(f.Data)
	}
	check(t, os.WriteFile(p.policies, []byte(p.writePath.objects["policies.yaml"]), 0o600))
	check(t, p.define("Gear", "gear"))
	for _, sort := range slices.Sorted(maps.Keys(proofObjects)) {
		for i := range proofObjects[sort] {
			object, err := parse(p.manifest(sort+".yaml", fmt.Sprintf("%s-%d", sort, i)))
			check(t, err)
			p.objects = append(p.objects, object)
		}
	}
	return p
}

// refer makes the run that the others are compared with: no faults, no kills,
// no other clients.
func (p *proof) refer(t *testing.T) {
	t.Helper()
	r := p.newRun(t, 0, faultproxy.Options{})
	p.requests = r.proxy.Requests()
	e := r.start(t, 0, r.applyArguments()...)
	if e.code != 0 {
		t.Fatalf("without faults: exit code %d\n%s", e.code, e.output)
	}
	p.requests = r.proxy.Requests() - p.requests
	p.wanted = r.contents(t)
	for name := range p.wanted {
		if n := r.stored(name, manager, 0); n != 1 {
			t.Errorf("without faults: %d writes of %s", n, name)
		}
	}
}

// count adds to the figures that the test reports.
func (p *proof) count(what string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.figures[what] += n
}

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
	return writeArguments("apply-existing", "-p", r.policies, "--list-all", "--max-changes", "0", "--journal-secrets", "--journal", r.newFile())
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
		e := r.start(t, kill, writeArguments("apply-existing", "--resume", r.file, "--list-all")...)
		return e, !e.brokenOff() && done(r.readJournal(t, r.file))
	})
	r.others.checkReported(t, last.code, `%[1]s (drifted|.* Failed)`)
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

// others write the objects of a run while the plugin is dead.
type others struct {
	run  *proofRun
	did  map[string][]tweak // by name
	kept map[string]bool    // objects that are as they were, but for what others did
	// conflicting are objects whose fields others have changed as well in this
	// stage, which has to be reported.
	conflicting map[string]bool
	versions    []string // that they wrote
}

func newOthers(r *proofRun) *others {
	return &others{run: r, did: map[string][]tweak{}, kept: map[string]bool{}, conflicting: map[string]bool{}}
}

// theirs is the change of a field that the policies change as well, by the sort of
// object.
var theirs = map[string]tweak{
	"settings": {Do: doSet, At: fieldpath.MakePathOrDie("data", "mode"), Value: "theirs"},
	"odd":      {Do: doSet, At: fieldpath.MakePathOrDie("data", "mode"), Value: "theirs"},
	"web":      {Do: doSet, At: container("app", "imagePullPolicy"), Value: "Never"},
	"api":      {Do: doSet, At: container("app", "imagePullPolicy"), Value: "Never"},
	"token":    {Do: doSet, At: fieldpath.MakePathOrDie("data", "key"), Value: "dGhlaXJz"},
	"gear":     {Do: doSet, At: fieldpath.MakePathOrDie("spec", "teeth", fieldpath.KeyByFields("id", "a"), "size"), Value: int64(7)},
}

func container(name, field string) fieldpath.Path {
	return fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", name), field)
}

// conflicts is how many objects others are faster with in each stage, if there are
// as many left.
const conflicts = 2

// meddle has others write in the middle of an apply: the very fields of objects
// that are not written yet, the status of some, and another field of some.
func (o *others) meddle(t *testing.T) {
	t.Helper()
	left := conflicts
	o.each(func(i int, object *unstructured.Unstructured) {
		name := object.GetName()
		if left > 0 && o.run.stored(name, manager, 0) == 0 {
			left--
			o.conflicting[name], o.kept[name] = true, true
			o.writeTheirs(t, object)
			return
		}
		o.writeBeside(t, object, i, "other")
	})
}

// meddleAgain has others write before an undo: the fields of objects that were
// written, and what is beside them.
func (o *others) meddleAgain(t *testing.T) {
	t.Helper()
	o.conflicting = map[string]bool{}
	left := conflicts
	o.each(func(i int, object *unstructured.Unstructured) {
		name := object.GetName()
		if left > 0 && !o.kept[name] {
			left--
			o.conflicting[name] = true
			o.writeTheirs(t, object)
			return
		}
		o.writeBeside(t, object, i, "later")
	})
}

// each goes through the objects in random order.
func (o *others) each(do func(int, *unstructured.Unstructured)) {
	objects := slices.Clone(o.run.objects)
	o.run.random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	for i, object := range objects {
		do(i, object)
	}
}

func (o *others) writeTheirs(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	sort, _, _ := strings.Cut(object.GetName(), "-")
	o.write(t, object, "", theirs[sort])
	o.run.count("others' changes of the same field", 1)
}

// writeBeside leaves every second object alone.
func (o *others) writeBeside(t *testing.T, object *unstructured.Unstructured, i int, annotation string) {
	t.Helper()
	switch {
	case i%2 == 0:
	case object.GetKind() == "Deployment":
		o.write(t, object, "status", tweak{Do: doSet, At: fieldpath.MakePathOrDie("status"), Value: map[string]any{"replicas": int64(i)}})
		o.run.count("others' changes of the status", 1)
	default:
		o.write(t, object, "", tweak{Do: doSet, At: fieldpath.MakePathOrDie("metadata", "annotations", annotation), Value: "1"})
		o.run.count("others' changes of another field", 1)
	}
}

func (o *others) write(t *testing.T, object *unstructured.Unstructured, subresource string, change tweak) {
	t.Helper()
	u := o.run.get(t, object)
	key := engine.KeyOf(u)
	key.Subresource = subresource
	changed := &unstructured.Unstructured{Object: edited(u.Object, []tweak{change})}
	answer, err := o.run.resource(key).Update(o.run.ctx, changed, metav1.UpdateOptions{FieldManager: "kubectl-edit"}, subresources(key)...)
	check(t, err)
	o.versions = append(o.versions, answer.GetResourceVersion())
	o.did[u.GetName()] = append(o.did[u.GetName()], change)
}

// over is what the objects should be: as the plugin is to make them, or as they
// were before where others were faster, and what others did.
func (o *others) over(made, before contents) contents {
	out := maps.Clone(made)
	for name, tweaks := range o.did {
		object := made[name]
		if o.kept[name] {
			object = before[name]
		}
		out[name] = edited(object, tweaks)
	}
	return out
}

// checkReported demands that the plugin says for each object that others were faster,
// by a pattern with the object's name, and that it does not call that a success.
func (o *others) checkReported(t *testing.T, code int, pattern string) {
	t.Helper()
	for name := range o.conflicting {
		if !regexp.MustCompile(fmt.Sprintf(pattern, name)).MatchString(o.run.output.String()) {
			t.Errorf("seed %d: the output does not say that others have changed %s", o.run.seed, name)
		}
	}
	if len(o.conflicting) > 0 && code == 0 {
		t.Errorf("seed %d: exit code 0, although others have changed %d objects", o.run.seed, len(o.conflicting))
	}
}
