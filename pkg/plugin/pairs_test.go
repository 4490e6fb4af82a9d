package plugin_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/test/corpus"
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

// TestPairs compares policies with their verified rewrites, converts the originals, and compares what is
// printed with them as a user would. What differs, and where, has to be what pairsListFile says, and what is
// not converted, and why, what convertListFile says.
func TestPairs(t *testing.T) {
	tier.NotShort(t)
	listed := readPairsList(t)
	pairs := findPairs(t, listed)
	conversions := newConversions(t)
	var mu sync.Mutex
	counts := map[string]int{}
	t.Run("pairs", func(t *testing.T) {
		for _, p := range pairs {
			t.Run(p.id, func(t *testing.T) {
				t.Parallel()
				got := p.compare(t)
				conversions.judge(t, p.conversion())
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
	conversions.end(t)
	for id := range listed {
		if corpus.NotRun() == "" && tier.All() {
			t.Errorf("%s: %q names no pair", pairsListFile, id)
		}
	}
	var table []string
	for name, n := range counts {
		table = append(table, fmt.Sprintf("%-40s %6d", name, n))
	}
	slices.Sort(table)
	t.Log("\n" + strings.Join(table, "\n") + "\n" + corpus.NotRun())
}

// findPairs writes the pairs of the corpus into directories, one for each rewrite of a policy. On a push,
// those that are the same are compared on fewer variants than at night.
func findPairs(t *testing.T, listed map[string]string) []policyPair {
	t.Helper()
	all, err := corpus.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	var out []policyPair
	for _, pair := range all {
		if strings.HasPrefix(pair.ID, "migrations/") && !tier.All() {
			continue // at night: they are of other projects
		}
		dir := t.TempDir()
		if err := pair.Write(dir); err != nil {
			t.Fatal(err)
		}
		variants := tier.Pick(60, 300)
		switch {
		case strings.HasPrefix(pair.ID, "migrations/"):
			variants = 1500
		case listed[pair.ID] != "" || listed[pair.ID+"/map"] != "":
			variants = 300
		}
		one := policyPair{pair.ID, filepath.Join(dir, "old.yaml"), filepath.Join(dir, "new.yaml"), filepath.Join(dir, "objects.yaml"), strconv.Itoa(variants)}
		if pair.Has("new.yaml") {
			out = append(out, one)
		}
		if pair.Has("map.yaml") {
			one.id, one.rewritten = pair.ID+"/map", filepath.Join(dir, "map.yaml")
			out = append(out, one)
		}
	}
	return out
}

// conversion is the original of the pair, to be converted to the language of its rewrite.
func (p *policyPair) conversion() *conversionCase {
	id, isMap := strings.CutSuffix(p.id, "/map")
	to := "mutatingpolicy"
	if isMap {
		to = "mutatingadmissionpolicy"
	}
	return &conversionCase{id: id, to: to, policy: p.old, objects: p.objects}
}

// compare runs the command as a user would.
func (p *policyPair) compare(t *testing.T) *compared {
	t.Helper()
	code, out, errOut := runCommand(t, "compare", "-p", p.old, "--with", p.rewritten, "-f", p.objects, "-o", "json", "--variants="+p.variants, "--request-user", "dev-jane")
	var got compared
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("exit code %d: %v\n%s", code, err, errOut)
	}
	return &got
}

// readPairsList returns where pairs differ, by their IDs.
func readPairsList(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for entry := range reasons(t, pairsListFile) {
		id, where, ok := strings.Cut(entry, " ")
		if out[id] = strings.TrimSpace(where); !ok {
			t.Errorf("%s: %q needs a pair, and where it shows", pairsListFile, entry)
		}
	}
	return out
}
