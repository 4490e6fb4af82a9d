package plugin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/test/corpus"
)

// slipsFile lists slips that people make in a rewrite; it says in which form.
var slipsFile = filepath.Join("testdata", "compare-slips.txtar")

// notFound ends the names of slips that no variant shows.
const notFound = " (not found)"

// TestCompareSlips compares a policy with a rewrite that has a slip. Variants of minimal objects have to show
// it.
func TestCompareSlips(t *testing.T) {
	tier.NotShort(t)
	pairs := map[string]corpus.Pair{}
	all, err := corpus.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		pairs[p.ID] = p
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "no-cluster"))
	archive, err := txtar.ParseFile(slipsFile)
	if err != nil {
		t.Fatal(err)
	}
	objects := filepath.Join(t.TempDir(), "objects.yaml") // which no policy changes
	writeFile(t, objects, "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: other, namespace: other}\nspec: {minAvailable: 1}\n")
	var mu sync.Mutex
	var missed []string
	t.Run("slips", func(t *testing.T) {
		for i, slip := range archive.Files {
			if i%tier.Pick(8, 1) > 0 {
				continue // at night; TestPairs has the others on a push
			}
			t.Run(slip.Name, func(t *testing.T) {
				t.Parallel()
				id, _, _ := strings.Cut(slip.Name, ":")
				pair, ok := pairs[id]
				if !ok {
					t.Skip(corpus.NotRun())
				}
				dir := t.TempDir()
				p := policyPair{id, filepath.Join(dir, "old.yaml"), filepath.Join(dir, "new.yaml"), objects, "2000"}
				writeFile(t, p.old, string(pair.Files["old.yaml"]))
				writeFile(t, p.rewritten, slipped(t, string(pair.Files["new.yaml"]), string(slip.Data)))
				found := p.compare(t).where() != ""
				if !found {
					mu.Lock()
					defer mu.Unlock()
					missed = append(missed, slip.Name)
				}
				if want := !strings.HasSuffix(slip.Name, notFound); found != want {
					t.Errorf("found: %t; %s says %t", found, slipsFile, want)
				}
			})
		}
	})
	t.Logf("%d of %d slips found", len(archive.Files)-len(missed), len(archive.Files))
}

// slipped returns a policy with the strings of "- " lines replaced by those of the "+ " lines that follow them.
func slipped(t *testing.T, policy, slip string) string {
	t.Helper()
	out, from := policy, ""
	for line := range strings.Lines(slip) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "- "):
			from = line[2:]
		case !strings.HasPrefix(line, "+"):
			t.Fatalf("%q is no line of a slip", line)
		case !strings.Contains(out, from):
			t.Fatalf("the policy has no text %q", from)
		default:
			out = strings.ReplaceAll(out, from, strings.TrimPrefix(line[1:], " "))
		}
	}
	return out
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(fmt.Errorf("writing %s: %w", path, err))
	}
}
