package plugin_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/test/corpus"
)

var differences = flag.Bool("differences", false, "log what is different in cases that are known not to agree")

var openListFile = filepath.Join("testdata", "conformance-open.txt")

// reasons reads a list of what is not as it should be: lines "ENTRY  # reason".
func reasons(t *testing.T, file string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(content)) {
		entry, reason, _ := strings.Cut(line, "#")
		if entry, reason = strings.TrimSpace(entry), strings.TrimSpace(reason); entry == "" {
			continue
		}
		if reason == "" || out[entry] != "" {
			t.Errorf("%s: %s has no reason, or stands there twice", file, entry)
		}
		out[entry] = reason
	}
	return out
}

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
	results := &results{open: reasons(t, openListFile), counts: map[string]*[2]int{}}
	conversions := newConversions(t)
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				c.dir = t.TempDir()
				if err := c.Write(c.dir); err != nil {
					t.Fatal(err)
				}
				results.judge(t, c, c.run(t))
				if c.converts() {
					conversions.judge(t, c.conversion())
				}
			})
		}
	})
	conversions.end(t)
	for id := range results.open {
		if corpus.NotRun() == "" && !slices.ContainsFunc(cases, func(c replayCase) bool { return c.ID == id }) {
			t.Errorf("%s: %q names no case", openListFile, id)
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
func (c *replayCase) run(t *testing.T) string {
	t.Helper()
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
	code, out, errOut := runCommand(t, args...)
	if code == process.ExitNothing && !c.Has("want.error") {
		return "nothing was evaluated: " + errOut
	}
	if diff := c.compare(out); diff != "" {
		return fmt.Sprintf("exit code %d\n%s\n%s", code, errOut, diff)
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
	diff := cmp.Diff(want, got)
	if diff == "" {
		return ""
	}
	given, err := c.objects("objects.yaml", nil)
	if err != nil {
		return err.Error()
	}
	if cmp.Diff(asStored(want, given), asStored(got, given)) == "" {
		return ""
	}
	return diff
}

// asStored returns the objects that differ, once a server has decoded them, from those that were given. The
// engines were asked without a server: what they write as a default is not a change there.
func asStored(objects, given map[string]any) map[string]any {
	out := map[string]any{}
	for name, object := range objects {
		now, before := decoded(object), decoded(given[name])
		if !reflect.DeepEqual(now, before) {
			out[name] = now
		}
	}
	return out
}

func decoded(object any) any {
	content, ok := object.(map[string]any)
	if !ok {
		return nil
	}
	return openapi.AsStored(&unstructured.Unstructured{Object: content}).Object
}

func (c *replayCase) file(name string) string { return filepath.Join(c.dir, name) }

// results collects what came of the cases, which run side by side.
type results struct {
	open map[string]string // the reasons of openListFile

	mu     sync.Mutex
	counts map[string]*[2]int // of those that agree, and of all, by set
}

// judge fails the test where the result of a case and the list differ.
func (r *results) judge(t *testing.T, c replayCase, difference string) {
	t.Helper()
	r.count(c.Set(), difference == "")
	switch reason := r.open[c.ID]; {
	case difference != "" && reason == "":
		t.Errorf("the answer is not the real engine's, and %s does not list the case:\n%s", openListFile, shorten(difference))
	case difference == "" && reason != "":
		t.Errorf("the case agrees by now: take it off %s (%s)", openListFile, reason)
	case difference != "" && *differences:
		t.Logf("open: %s\n%s", reason, shorten(difference))
	}
}

func (r *results) count(set string, agrees bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, set := range []string{set, "total"} {
		if r.counts[set] == nil {
			r.counts[set] = &[2]int{}
		}
		if r.counts[set][1]++; agrees {
			r.counts[set][0]++
		}
	}
}

// table is a line per set, and the total.
func (r *results) table() string {
	var b strings.Builder
	for _, set := range slices.Sorted(maps.Keys(r.counts)) {
		n := r.counts[set]
		fmt.Fprintf(&b, "conformance %-14s agree %3d  open %3d  of %3d\n", set, n[0], n[1]-n[0], n[1])
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
