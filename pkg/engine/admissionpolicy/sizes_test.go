package admissionpolicy_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/heap"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// policyOf returns a policy for ConfigMaps with one JSON patch for each expression.
func policyOf(name string, expressions ...string) engine.Document {
	var mutations []any
	for _, x := range expressions {
		mutations = append(mutations, map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": x}})
	}
	rule := map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{"configmaps"}}
	return engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"failurePolicy": "Fail", "reinvocationPolicy": "Never", "mutations": mutations,
			"matchConstraints": map[string]any{"resourceRules": []any{rule}},
		},
	}}, "")
}

// What a compiled policy keeps is little: its document is not needed any more, and what it matches is shared by all that match
// the same.
func TestCompiledPoliciesKeepLittle(t *testing.T) {
	const most = 1_200 // bytes for a policy
	kept := func(policies int) int64 {
		before := heap.InUse()
		documents := make([]engine.Document, policies)
		for i := range documents {
			documents[i] = policyOf(fmt.Sprint("p", i), `[JSONPatch{op: "add", path: "/data/a", value: "b"}]`)
		}
		program, err := admissionpolicy.New().Compile(engine.Compilation{Documents: documents, Release: true, AssumeBinding: true})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(program.Selections()); n != 1 {
			t.Errorf("%d selections of policies that match the same, want one", n)
		}
		after := heap.InUse()
		runtime.KeepAlive(program)
		return after - before
	}
	kept(1) // what is made once
	if few, many := kept(100), kept(400); many > few+300*most {
		t.Errorf("400 policies keep %d bytes, and 100 %d: want at most %d more for each", many, few, most)
	}
}

// changes counts the steps that changed the object.
type changes struct{ count int }

func (*changes) Wants(engine.Outcome) bool { return false }

func (*changes) NotMatched(engine.RuleList) {}

func (c *changes) Step(s engine.Step) {
	if s.Outcome == engine.Changed {
		c.count++
	}
}

// mutate compiles policies and evaluates them on an object; allocated is what that took, in
// bytes.
func mutate(t *testing.T, policies []engine.Document, data map[string]any) (allocated uint64) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools, which are then filled again
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "default"}, "data": data,
	}}
	cluster, err := conformance.NewCluster([]*unstructured.Unstructured{u}, nil, engine.Request{})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	program, err := admissionpolicy.New().Compile(engine.Compilation{Documents: policies})
	if err != nil {
		t.Fatal(err)
	}
	var steps changes
	if _, err := program.Evaluate(t.Context(), engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}, cluster.World, &steps); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if steps.count == 0 {
		t.Fatal("nothing changed")
	}
	return after.TotalAlloc - before.TotalAlloc
}

// Twice the input takes at most 2.2 times as much, at sizes where what grows by steps has taken
// as many for both.
func TestSizesAreLinear(t *testing.T) {
	const count = `[JSONPatch{op: "add", path: "/data/x", value: string(object.data.map(k, object.data[k].upperAscii() + "a").size())}]`
	for name, c := range map[string]struct {
		size int
		run  func(n int) ([]engine.Document, map[string]any)
	}{
		"policies": {20, func(n int) (out []engine.Document, data map[string]any) {
			for i := range n {
				out = append(out, policyOf(fmt.Sprintf("p%d", i), count))
			}
			return out, map[string]any{"a": "b"}
		}},
		"rules": {20, func(n int) ([]engine.Document, map[string]any) {
			mutations := make([]string, n)
			for i := range mutations {
				mutations[i] = count
			}
			return []engine.Document{policyOf("p", mutations...)}, map[string]any{"a": "b"}
		}},
		"elements": {2000, func(n int) ([]engine.Document, map[string]any) {
			data := map[string]any{}
			for i := range n {
				data[fmt.Sprintf("k%d", i)] = "value"
			}
			return []engine.Document{policyOf("p", count)}, data
		}},
		"bytes of a value": {260_000, func(n int) ([]engine.Document, map[string]any) {
			return []engine.Document{policyOf("p", count)}, map[string]any{"a": strings.Repeat("a", n)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			half, halfData := c.run(c.size)
			whole, wholeData := c.run(2 * c.size)
			mutate(t, whole, wholeData) // what is made once, and kept
			once, twice := mutate(t, half, halfData), mutate(t, whole, wholeData)
			if float64(twice) > 2.2*float64(once) {
				t.Errorf("%d bytes are allocated for %d, %d for twice as much", once, c.size, twice)
			}
		})
	}
}

// What a policy keeps is its own: the functions of the language, a hundred times as much, are
// shared, whether or not it has variables.
func TestPoliciesShareTheLanguage(t *testing.T) {
	const most = 5_000 // bytes for a policy
	kept := func(n int) uint64 {
		policies := make([]engine.Document, n)
		for i := range policies {
			policies[i] = policyOf(fmt.Sprintf("p%d", i), fmt.Sprintf(`[JSONPatch{op: "add", path: "/data/%d", value: variables.v}]`, i))
			spec, _ := policies[i].Object().Object["spec"].(map[string]any)
			spec["variables"] = []any{map[string]any{"name": "v", "expression": `"a"`}}
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		program, err := admissionpolicy.New().Compile(engine.Compilation{Documents: policies, Release: true})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(program)
		return after.HeapAlloc - before.HeapAlloc
	}
	kept(1) // what is made once
	if once, more := kept(1), kept(101); more > once+100*most {
		t.Errorf("101 policies keep %d bytes, one %d: want at most %d more for each", more, once, most)
	}
}
