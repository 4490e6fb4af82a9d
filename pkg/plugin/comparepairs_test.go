package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// pairsListFile lists the pairs whose policies do not do the same: lines "SET/NAME WHERE  # reason", where
// WHERE is "objects" if their own objects show it, else "variants".
var pairsListFile = filepath.Join("testdata", "compare-differs.txt")

// policyPair is a policy and its rewrite, with objects.
type policyPair struct{ id, old, rewritten, objects, variants string }

// compared is what compare says of a pair.
type compared struct {
	Differences []struct {
		Verdict string    `json:"verdict"`
		Variant *struct{} `json:"variant"`
	} `json:"differences"`
	Summary struct {
		Conclusion string `json:"conclusion"`
		Variants   struct {
			Compared int `json:"compared"`
		} `json:"variants"`
	} `json:"summary"`
}

// where says what shows that the policies of the pair do not do the same: its objects, or only variants.
func (c *compared) where() string {
	out := ""
	for _, d := range c.Differences {
		switch {
		case d.Verdict == "not-comparable":
		case d.Variant == nil:
			return "objects"
		default:
			out = "variants"
		}
	}
	return out
}

// TestComparePairs compares policies with their rewrites: ../shared/migrations has official ones, with
// slips, and ../shared/conversions verified ones. What differs, and where, has to be what pairsListFile says.
func TestComparePairs(t *testing.T) {
	shared := filepath.Join("..", "..", "..", "shared")
	pairs := findPairs(t, shared)
	if len(pairs) == 0 {
		t.Skipf("NO POLICY IS COMPARED WITH ITS REWRITE: no pairs in %s", shared)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	listed := readPairsList(t)
	var mu sync.Mutex
	counts := map[string]int{}
	t.Run("pairs", func(t *testing.T) {
		for _, p := range pairs {
			t.Run(p.id, func(t *testing.T) {
				t.Parallel()
				got := p.compare(t)
				want := listed[p.id]
				mu.Lock()
				defer mu.Unlock()
				delete(listed, p.id)
				set, _, _ := strings.Cut(p.id, "/")
				counts[set+" "+got.Summary.Conclusion]++
				counts[set+" variants compared"] += got.Summary.Variants.Compared
				switch where := got.where(); {
				case got.Summary.Conclusion == "not-comparable":
					t.Error("is not comparable")
				case where != want:
					t.Errorf("shown by %q; %s says %q", where, pairsListFile, want)
				}
			})
		}
	})
	for id := range listed {
		t.Errorf("%s: %q names no pair", pairsListFile, id)
	}
	var table []string
	for name, n := range counts {
		table = append(table, fmt.Sprintf("%-40s %6d", name, n))
	}
	slices.Sort(table)
	t.Log("\n" + strings.Join(table, "\n"))
}

func findPairs(t *testing.T, shared string) []policyPair {
	t.Helper()
	var out []policyPair
	for set, variants := range map[string]string{"migrations": "1500", "conversions": "300"} {
		for _, name := range []string{"new", "map"} {
			paths, err := filepath.Glob(filepath.Join(shared, set, "*", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				dir := filepath.Dir(path)
				id := set + "/" + filepath.Base(dir)
				if name != "new" {
					id += "/" + name
				}
				out = append(out, policyPair{id, filepath.Join(dir, "old.yaml"), path, filepath.Join(dir, "objects.yaml"), variants})
			}
		}
	}
	return out
}

// compare runs the command as a user would.
func (p *policyPair) compare(t *testing.T) *compared {
	t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	root := plugin.NewCommand("kubectl mutate", streams)
	code := plugin.Run(context.Background(), root, []string{
		"compare", "-p", p.old, "--with", p.rewritten, "-f", p.objects, "-o", "json", "--variants=" + p.variants, "--request-user", "dev-jane",
	}, streams)
	var got compared
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("exit code %d: %v\n%s", code, err, errOut.String())
	}
	return &got
}

func readPairsList(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(pairsListFile)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(content)) {
		entry, reason := splitOpenLine(line)
		id, where, ok := strings.Cut(entry, " ")
		switch {
		case entry == "":
		case !ok || reason == "":
			t.Errorf("%s: %q needs a pair, where it shows, and a reason", pairsListFile, line)
		default:
			out[id] = strings.TrimSpace(where)
		}
	}
	return out
}
