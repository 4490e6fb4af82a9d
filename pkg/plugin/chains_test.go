package plugin_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

var (
	chainTrials = flag.Int("chains", 100, "how many random graphs of rules TestChainsReachTheirEnd tries")
	chainSeed   = flag.Uint64("chain-seed", 0, "try the graph of one seed only")
)

// graph is a random set of rules over a few ConfigMaps. Each rule sets one field to a constant or to what its
// trigger has, so that it does nothing a second time; what it makes of one object may trigger others.
type graph struct {
	*rand.Rand
	objects map[string]map[string]any // by name
	// standard reports whether there is a rule without targets. A second one may depend on the first one, or
	// the first one on it, as in admission.
	standard bool
	// spread gives each object a namespace of its own.
	spread bool
}

func newGraph(seed uint64) *graph { return newGraphIn(seed, false) }

func newGraphIn(seed uint64, spread bool) *graph {
	g := &graph{Rand: rand.New(rand.NewPCG(seed, 1)), objects: map[string]map[string]any{}, spread: spread}
	for _, name := range graphNames {
		data := map[string]any{}
		for _, key := range graphKeys {
			if g.IntN(2) == 0 {
				data[key] = g.value()
			}
		}
		g.objects[name] = map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": data,
			"metadata": map[string]any{"name": name, "namespace": g.namespace(name), "labels": map[string]any{"is": g.value()}},
		}
	}
	return g
}

var (
	graphNames = []string{"a", "b", "c", "d", "e"}
	graphKeys  = []string{"x", "y"}
)

// namespace is that of an object, or of any of them.
func (g *graph) namespace(name string) string {
	if g.spread {
		return "in-" + name
	}
	return "shop"
}

func (g *graph) pick(from []string) string { return from[g.IntN(len(from))] }
func (g *graph) value() string             { return fmt.Sprint(g.IntN(3)) }

// policies are between two and seven rules, in one policy or two.
func (g *graph) policies() string {
	var out []string
	rules := make([][]any, 2)
	for i := range 2 + g.IntN(6) {
		p := g.IntN(2)
		rules[p] = append(rules[p], g.rule(fmt.Sprintf("r%d", i)))
	}
	for i, list := range rules {
		if len(list) > 0 {
			out = append(out, text(map[string]any{
				"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy",
				"metadata": map[string]any{"name": fmt.Sprintf("p%d", i)}, "spec": map[string]any{"rules": list},
			}))
		}
	}
	return strings.Join(out, "---\n")
}

func (g *graph) rule(name string) map[string]any {
	resources := map[string]any{"kinds": []any{"ConfigMap"}}
	switch g.IntN(4) {
	case 0:
		resources["selector"] = map[string]any{"matchLabels": map[string]any{"is": g.value()}}
	case 1:
	default:
		resources["names"] = []any{g.pick(graphNames)}
	}
	rule := map[string]any{"name": name, "match": map[string]any{"any": []any{map[string]any{"resources": resources}}}}
	if g.IntN(3) == 0 {
		rule["preconditions"] = map[string]any{"all": []any{map[string]any{
			"key": "{{ request.object.data." + g.pick(graphKeys) + " || '' }}", "operator": "Equals", "value": g.value(),
		}}}
	}
	mutate := map[string]any{"patchStrategicMerge": g.patch()}
	if g.standard || g.IntN(4) > 0 {
		name := g.pick(graphNames)
		target := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": g.namespace(name), "name": name}
		if g.IntN(4) == 0 {
			delete(target, "name")
			target["namespace"] = g.namespace("?")
			target["selector"] = map[string]any{"matchLabels": map[string]any{"is": g.value()}}
		}
		mutate["targets"] = []any{target}
	} else {
		g.standard = true
	}
	rule["mutate"] = mutate
	return rule
}

func (g *graph) patch() map[string]any {
	value := g.value()
	if g.IntN(2) == 0 {
		value = "{{ request.object.data." + g.pick(graphKeys) + " || 'none' }}"
	}
	if g.IntN(4) == 0 {
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{"is": value}}}
	}
	return map[string]any{"data": map[string]any{g.pick(graphKeys): value}}
}

func text(v any) string {
	out, err := yaml.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func (g *graph) manifests() string {
	var out []string
	for _, name := range graphNames {
		if u := g.objects[name]; u != nil {
			out = append(out, text(u))
		}
	}
	return strings.Join(out, "---\n")
}

// run previews the graph as a user would. It returns the exit code, and what is printed.
func (g *graph) run(t *testing.T, dir, format string, flags ...string) (code int, out, errOut string) {
	t.Helper()
	objects := write(t, dir, "objects.yaml", g.manifests())
	args := []string{"preview", "-p", filepath.Join(dir, "policy.yaml"), "-f", objects, "-o", format, "--quiet", "--annotate=false"}
	return runCommand(t, append(args, flags...)...)
}

// apply makes the changes.
func (g *graph) apply(t *testing.T, dir string) {
	t.Helper()
	_, printed, _ := g.run(t, dir, "manifests")
	for document := range strings.SplitSeq(printed, "\n---\n") {
		var u struct{ Metadata struct{ Name string } }
		var whole map[string]any
		if err := yaml.Unmarshal([]byte(document), &u); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(document), &whole); err != nil {
			t.Fatal(err)
		}
		g.objects[u.Metadata.Name] = whole
	}
}

// graphReport is what of a report says how rules are chained.
type graphReport struct {
	Changes []struct {
		Steps []struct {
			Outcome, Reason  string
			TriggerChangedBy []any
			Fields           []string
		}
	}
}

// facts are what a report says about rules as a whole.
func (r *graphReport) facts() (chained, contested bool) {
	for _, c := range r.Changes {
		wrote := map[string]bool{}
		for _, s := range c.Steps {
			chained = chained || len(s.TriggerChangedBy) > 0
			for _, field := range s.Fields {
				contested = contested || wrote[field]
				wrote[field] = true
			}
		}
	}
	return chained, contested
}

// TestChainsReachTheirEnd makes the changes of random rules and previews again: nothing more may change.
// Where several rules, or triggers, write one field, the last one wins, and a second run may miss one that
// the first one stopped: such graphs count only where they do reach their end.
func TestChainsReachTheirEnd(t *testing.T) {
	tier.NotShort(t)
	from, to := uint64(1), uint64(*chainTrials)
	if *chainSeed != 0 {
		from, to = *chainSeed, *chainSeed
	}
	dir := t.TempDir()
	counted := map[string]int{}
	for seed := from; seed <= to; seed++ {
		g := newGraph(seed)
		policies, before := g.policies(), g.manifests()
		if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policies), 0o600); err != nil {
			t.Fatal(err)
		}
		code, printed, said := g.run(t, dir, "json")
		var report graphReport
		if err := json.Unmarshal([]byte(printed), &report); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, said)
		}
		chained, contested := report.facts()
		switch {
		case code == process.ExitIncomplete && strings.Contains(printed, "go on changing what triggers them"):
			counted["without end"]++
			continue
		case code == process.ExitOK || strings.Contains(printed, "notIdempotent"):
			continue
		case code != process.ExitChanges:
			t.Fatalf("seed %d: exit code %d\n%s---\n%s\n%s", seed, code, policies, before, said)
		}
		g.apply(t, dir)
		code, again, _ := g.run(t, dir, "diff")
		switch {
		case code == process.ExitOK:
			counted["settled"]++
			if chained {
				counted["chained"]++
			}
		case contested:
			counted["contested"]++
		default:
			t.Errorf("seed %d: a second run changes something\n%s---\n%s\nthe first run:\n%s\nthe second run:\n%s", seed, policies, before, printed, again)
		}
	}
	t.Log(counted)
	if *chainSeed == 0 && (counted["chained"]*4 < *chainTrials || counted["contested"]*20 > counted["settled"]) {
		t.Errorf("the graphs test too little: %v", counted)
	}
}

// What a rule did because of a trigger that others change meanwhile is not followed: "a" makes "e" name "c",
// and no longer "b", which would have triggered a change of "d".
func TestChainsFollowWhatIsLeft(t *testing.T) {
	dir := t.TempDir()
	rule := func(name, trigger, condition, target, patch string) string {
		return fmt.Sprintf(`{name: %s, match: {any: [{resources: {kinds: [ConfigMap], names: [%s]}}]}, preconditions: {all: [%s]},
    mutate: {targets: [{apiVersion: v1, kind: ConfigMap, namespace: shop, name: %q}], patchStrategicMerge: {data: %s}}}`, name, trigger, condition, target, patch)
	}
	policy := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - " + strings.Join([]string{
		rule("redirect", "a", "", "e", "{to: c}"),
		rule("point", "e", "", "{{ request.object.data.to }}", `{x: "1"}`),
		rule("follow", "b", `{key: "{{ request.object.data.x || '' }}", operator: Equals, value: "1"}`, "d", `{y: "1"}`),
	}, "\n  - ")
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &graph{objects: map[string]map[string]any{}}
	for _, name := range graphNames {
		g.objects[name] = map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"}, "data": map[string]any{"to": "b"},
		}
	}
	g.apply(t, dir)
	got := map[string]any{}
	for name, u := range g.objects {
		got[name] = u["data"]
	}
	if want := "map[a:map[to:b] b:map[to:b] c:map[to:b x:1] d:map[to:b] e:map[to:c]]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
