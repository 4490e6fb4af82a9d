package e2e

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
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
