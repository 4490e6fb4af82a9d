package kyverno

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// forEachPolicy is a policy of one rule with these entries of a foreach, and a context or "".
func forEachPolicy(t *testing.T, context string, entries ...string) engine.Program {
	t.Helper()
	policy := conformance.ReadObjects(t, fmt.Sprintf(`{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {"rules": [{"name": "r",
		"match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, %s "mutate": {"foreach": [%s]}}]}}`, context, strings.Join(entries, ", ")))[0]
	program, err := New().Compile(engine.Compilation{Documents: engine.Documents(policy), Limits: engine.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Twice the lists of a foreach that write to one map take at most 2.2 times as much.
func TestListsOfAForEachAreLinear(t *testing.T) {
	for form, patch := range map[string]string{
		"strategic merge": `"patchStrategicMerge": {"data": {"k%d": "{{element}}"}}`,
		"JSON patch":      `"patchesJson6902": "[{\"op\": \"add\", \"path\": \"/data/k%d\", \"value\": \"{{request.object.data.a}}\"}]"`,
	} {
		t.Run(form, func(t *testing.T) {
			allocated := func(n int) uint64 {
				entries := make([]string, n)
				for i := range entries {
					entries[i] = `{"list": "['a']", ` + fmt.Sprintf(patch, i) + "}"
				}
				program := forEachPolicy(t, "", entries...)
				live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": map[string]any{"a": "a"}}}
				var before, done runtime.MemStats
				runtime.ReadMemStats(&before)
				after, err := program.Evaluate(t.Context(), conformance.TargetOf(live), conformance.NewWorld(), quiet{})
				runtime.ReadMemStats(&done)
				if err != nil || len(after.Object["data"].(map[string]any)) != n+1 {
					t.Fatal(err, after.Object)
				}
				return done.TotalAlloc - before.TotalAlloc
			}
			allocated(10) // what is made once
			if once, twice := allocated(500), allocated(1000); float64(twice) > 2.2*float64(once) {
				t.Errorf("500 lists allocate %d bytes, 1,000 %d: %.1f times as much", once, twice, float64(twice)/float64(once))
			}
		})
	}
}

// An entry with one element, which may change the object in place, does what it does beside an element that is null.
func TestForEachInPlace(t *testing.T) {
	const object = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n", "labels": {"a": "1"}}, "data": {"a": "b"}, "deep": {"er": {}}}`
	changed := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		context, entries := "", make([]string, 2+r.IntN(5))
		if seed%2 == 0 {
			context = `"context": [{"name": "d", "variable": {"jmesPath": "request.object.data"}}],`
		}
		for i := range entries {
			entries[i] = randomEntry(r, context != "")
		}
		evaluated := func(rest string) string {
			live := conformance.ReadObjects(t, object)[0]
			var steps strings.Builder
			program := forEachPolicy(t, context, strings.Split(strings.ReplaceAll(strings.Join(entries, "\n"), "REST", rest), "\n")...)
			after, err := program.Evaluate(t.Context(), conformance.TargetOf(live), conformance.NewWorld(), conformance.Steps{Writer: &steps})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(conformance.ReadObjects(t, object)[0], live); diff != "" {
				t.Fatalf("seed %d: the live object has changed: %s", seed, diff)
			}
			if after != live {
				changed++
			}
			text, err := json.MarshalIndent(after.Object, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if diff := cmp.Diff(evaluated(", `null`"), evaluated("")); diff != "" {
			t.Fatalf("seed %d, %s%s: (-copied +in place)\n%s", seed, context, strings.Join(entries, "\n"), diff)
		}
	}
	if changed < 500 {
		t.Errorf("only %d objects change", changed)
	}
}

// randomEntry is an entry of a foreach. REST stands for more elements of its list.
func randomEntry(r *rand.Rand, context bool) string {
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	list := pick("'a'", "'a', 'b'", "request.object.data", "request.object.metadata.labels", "request.object.data.a")
	value := pick("element", "request.object.data", "request.object.metadata.labels", "e")
	if context {
		list, value = pick(list, "d", "d"), pick(value, "d")
	}
	key := pick("a", "b", "c")
	patch := fmt.Sprintf(pick(`"patchStrategicMerge": {"data": {%q: "{{to_string(%s)}}"}}`, `"patchStrategicMerge": {"metadata": {"labels": {%q: "{{to_string(%s)}}"}}}`,
		`"patchStrategicMerge": {"deep": {"er": {%q: "{{to_string(%s)}}"}}}`), key, value)
	if r.IntN(3) == 0 {
		operations := fmt.Sprintf(pick(`[{"op": "add", "path": "/data/%s", "value": "{{length(to_string(%s))}}"}]`,
			`[{"op": "copy", "from": "/data", "path": "/deep/%s"}, {"op": "add", "path": "/metadata/labels/x", "value": "{{length(to_string(%s))}}"}]`,
			`[{"op": "remove", "path": "/data/%s"}, {"op": "add", "path": "/deep/er/a", "value": "{{length(to_string(%s))}}"}]`), key, value)
		patch = fmt.Sprintf(`"patchesJson6902": %q`, operations)
	}
	more := fmt.Sprintf(`"context": [{"name": "e", "variable": {"jmesPath": %q}}], `, pick("request.object.data", "element", "request.object.metadata"))
	if r.IntN(6) == 0 {
		more += fmt.Sprintf(`"preconditions": {"all": [{"key": "{{request.object.data.%s || 'none'}}", "operator": "NotEquals", "value": "none"}]}, `, key)
	}
	if r.IntN(4) == 0 {
		nested := fmt.Sprintf(`{"list": "['a'REST]", %s}, {"list": "[eREST]", %s}`, patch, patch)
		return fmt.Sprintf(`{"list": "[%sREST]", %s "foreach": [%s, %s]}`, list, more, nested, nested)
	}
	return fmt.Sprintf(`{"list": "[%sREST]", %s%s}`, list, more, patch)
}
