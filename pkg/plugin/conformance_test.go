package plugin_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/test/corpus"
)

var (
	updateOpen  = flag.Bool("update-open", false, "rewrite the list of cases that do not agree yet")
	differences = flag.Bool("differences", false, "log what is different in cases that are known not to agree")
)

// replayCase is a case of the corpus, whose files lie in a directory.
type replayCase struct {
	corpus.Case
	dir string
}

// TestConformance replays the answers of the real engines through the command
// itself. Cases that do not agree yet stand in testdata/conformance-open.txt;
// the test fails when one of them agrees, and when one that is not there does not.
// ClusterPolicies that need no data from elsewhere are converted too, and the new
// policies have to do what Kyverno answered to the old ones.
func TestConformance(t *testing.T) {
	tier.NotShort(t)
	cases := findCases(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	results := &results{open: readOpenList(t)}
	conversions := newConversions(t)
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				c.dir = t.TempDir()
				if err := c.Write(c.dir); err != nil {
					t.Fatal(err)
				}
				results.judge(t, c, c.run())
				if c.converts() {
					conversions.judge(t, c.conversion())
				}
			})
		}
	})
	if *updateOpen {
		results.rewriteOpenList(t)
	}
	conversions.end(t)
	if corpus.NotRun() == "" {
		for _, unused := range results.open.unused(cases) {
			t.Errorf("%s: %q names no case", openListFile, unused)
		}
	}
	t.Log("\n" + results.table() + corpus.NotRun())
}

func findCases(t *testing.T) []replayCase {
	t.Helper()
	found, err := corpus.Cases()
	if err != nil {
		t.Fatal(err)
	}
	var cases []replayCase
	for _, c := range found {
		cases = append(cases, replayCase{Case: c})
	}
	return cases
}

// run previews the case as a user would and returns what is different from the
// real engine's answer; nothing where they agree.
func (c *replayCase) run() string {
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	root := plugin.NewCommand("kubectl mutate", streams)
	args := []string{
		"preview", "-p", c.file("policy.yaml"), "-f", c.file("objects.yaml"),
		"--operation", c.Operation, "--show-secrets", "-o", "manifests",
	}
	if c.Has("world.yaml") {
		args = append(args, "--world", c.file("world.yaml"))
	}
	if c.Has("values.yaml") {
		args = append(args, "--values", c.file("values.yaml"))
	}
	code := plugin.Run(context.Background(), root, args, streams)
	if code == plugin.ExitNothing && !c.Has("want.error") {
		return "nothing was evaluated: " + errOut.String()
	}
	if diff := c.compare(out.String()); diff != "" {
		return fmt.Sprintf("exit code %d\n%s\n%s", code, errOut.String(), diff)
	}
	return ""
}

// compare returns what is different between the wanted and the printed objects,
// by the rules of the corpus.
func (c *replayCase) compare(printed string) string {
	want, err := c.objects("want.yaml", nil)
	if err != nil {
		return err.Error()
	}
	got, err := c.objects("-", strings.NewReader(printed))
	if err != nil {
		return "the output cannot be read: " + err.Error()
	}
	return cmp.Diff(want, got)
}

func (c *replayCase) file(name string) string { return filepath.Join(c.dir, name) }

// wantsChange reports whether the engine changed anything: an agreement about
// nothing says little of a dialect that is not there yet.
func (c *replayCase) wantsChange() bool { return len(c.Files["want.yaml"]) > 0 }

// results collects what came of the cases, which run side by side.
type results struct {
	open *openList

	mu     sync.Mutex
	counts map[string]*setCount
	agreed map[string]bool       // by id
	cases  map[string]replayCase // by id
}

type setCount struct{ agree, open, total int }

// judge fails the test where the result of a case and the list differ.
func (r *results) judge(t *testing.T, c replayCase, difference string) {
	t.Helper()
	reason, byName, listed := r.open.find(c)
	r.count(c, difference == "")
	switch {
	case *updateOpen:
	case difference != "" && !listed:
		t.Errorf("the answer is not the real engine's, and %s does not list the case:\n%s", openListFile, shorten(difference))
	case difference == "" && listed && (byName || c.wantsChange()):
		t.Errorf("the case agrees by now: take it off %s (%s)", openListFile, reason)
	case difference != "" && *differences:
		t.Logf("open: %s\n%s", reason, shorten(difference))
	}
}

func (r *results) count(c replayCase, agrees bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts, r.agreed, r.cases = map[string]*setCount{}, map[string]bool{}, map[string]replayCase{}
	}
	r.agreed[c.ID], r.cases[c.ID] = agrees, c
	for _, set := range []string{c.Set(), "total"} {
		if r.counts[set] == nil {
			r.counts[set] = new(setCount)
		}
		r.counts[set].total++
		if agrees {
			r.counts[set].agree++
		} else {
			r.counts[set].open++
		}
	}
}

// table is a line per set, the total last.
func (r *results) table() string {
	var sets []string
	for set := range r.counts {
		if set != "total" {
			sets = append(sets, set)
		}
	}
	slices.Sort(sets)
	var b strings.Builder
	for _, set := range append(sets, "total") {
		if n := r.counts[set]; n != nil {
			fmt.Fprintf(&b, "conformance %-14s agree %3d  open %3d  of %3d\n", set, n.agree, n.open, n.total)
		}
	}
	return b.String()
}

func shorten(text string) string {
	const most = 60
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "") + fmt.Sprintf("... and %d lines more\n", len(lines)-most)
}
