package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

var (
	updateOpen  = flag.Bool("update-open", false, "rewrite the list of cases that do not agree yet")
	differences = flag.Bool("differences", false, "log what is different in cases that are known not to agree")
)

// replayCase is one folder of the shared corpus: policies, objects, and what the
// real engine made of them.
type replayCase struct {
	ID        string   `json:"id"`
	Dialects  []string `json:"dialects"`
	Operation string   `json:"operation"`
	Undecided []string `json:"undecided"` // "namespace/kind/name"

	dir string
}

// TestConformance replays the answers of the real engines through the command
// itself. Cases that do not agree yet stand in testdata/conformance-open.txt;
// the test fails when one of them agrees, and when one that is not there does not.
func TestConformance(t *testing.T) {
	dir := os.Getenv("CONFORMANCE_DIR")
	typed := dir != ""
	if !typed {
		dir = filepath.Join("..", "..", "..", "shared", "conformance")
	}
	cases := findCases(t, dir)
	if len(cases) == 0 {
		if typed {
			t.Fatalf("CONFORMANCE_DIR=%s holds no case", dir)
		}
		t.Skipf("THE ANSWERS OF THE REAL ENGINES ARE NOT COMPARED: no cases in %s, and CONFORMANCE_DIR is not set", dir)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	results := &results{open: readOpenList(t)}
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				results.judge(t, c, c.run())
			})
		}
	})
	if *updateOpen {
		results.rewriteOpenList(t)
	}
	for _, unused := range results.open.unused(cases) {
		t.Errorf("%s: %q names no case", openListFile, unused)
	}
	t.Log("\n" + results.table())
}

func findCases(t *testing.T, dir string) []replayCase {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []replayCase
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := replayCase{dir: filepath.Dir(path)}
		if err := json.Unmarshal(content, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		cases = append(cases, c)
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
	if c.has("world.yaml") {
		args = append(args, "--world", c.file("world.yaml"))
	}
	preview, _, err := root.Find(args[:1])
	if err != nil {
		return err.Error()
	}
	if c.has("values.yaml") && preview.Flags().Lookup("values") != nil {
		args = append(args, "--values", c.file("values.yaml"))
	}
	code := plugin.Run(context.Background(), root, args, streams)
	if code == plugin.ExitNothing && !c.has("want.error") {
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

func (c *replayCase) has(name string) bool {
	_, err := os.Stat(c.file(name))
	return !errors.Is(err, fs.ErrNotExist)
}

// wantsChange reports whether the engine changed anything: an agreement about
// nothing says little of a dialect that is not there yet.
func (c *replayCase) wantsChange() bool {
	info, err := os.Stat(c.file("want.yaml"))
	return err == nil && info.Size() > 0
}

// set is the folder of the corpus that the case stands in.
func (c *replayCase) set() string {
	set, _, _ := strings.Cut(c.ID, "/")
	return set
}

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
	for _, set := range []string{c.set(), "total"} {
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
