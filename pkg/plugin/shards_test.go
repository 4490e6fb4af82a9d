package plugin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// TestShardsTogetherAreOneRun tries random graphs of rules whose triggers and targets lie in several
// namespaces. What all shards would change is what one run would, each object in one of them.
func TestShardsTogetherAreOneRun(t *testing.T) {
	tier.NotShort(t)
	const shards = 3
	changed, across := 0, 0
	for seed := range uint64(*chainTrials) {
		g, dir := newGraphIn(seed, true), t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(g.policies()), 0o600); err != nil {
			t.Fatal(err)
		}
		whole := g.changes(t, dir)
		parts, busy := map[string]string{}, 0
		for i := range shards {
			part := g.changes(t, dir, fmt.Sprintf("--shard=%d/%d", i, shards))
			if len(part) > 0 {
				busy++
			}
			for object, change := range part {
				if _, twice := parts[object]; twice {
					t.Errorf("seed %d: %s is in two shards", seed, object)
				}
				parts[object] = change
			}
		}
		if diff := cmp.Diff(whole, parts); diff != "" {
			t.Errorf("seed %d (-one run +shards):\n%s\n%s", seed, diff, g.policies())
		}
		changed += len(whole)
		if busy > 1 {
			across++
		}
	}
	if changed < *chainTrials/2 || across < *chainTrials/4 {
		t.Errorf("only %d objects changed, in %d graphs of more than one shard", changed, across)
	}
}

// changes are what becomes of objects, by name, and what their rules did.
func (g *graph) changes(t *testing.T, dir string, flags ...string) map[string]string {
	t.Helper()
	_, printed, messages := g.run(t, dir, "json", flags...)
	var found struct {
		Changes []struct {
			Object struct{ Name string }
			After  json.RawMessage
			Steps  []struct{ Rule, Outcome string }
		}
	}
	if err := json.Unmarshal([]byte(printed), &found); err != nil {
		t.Fatalf("%v\n%s%s", err, printed, messages)
	}
	out := map[string]string{}
	for _, c := range found.Changes {
		if _, twice := out[c.Object.Name]; twice {
			t.Errorf("%s is there twice", c.Object.Name)
		}
		out[c.Object.Name] = fmt.Sprint(string(c.After), c.Steps)
	}
	return out
}
