package mutatingpolicy_test

import (
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

// namespacedPolicy returns a policy of a namespace that reads an object there.
func namespacedPolicy(i int) engine.Document {
	rule := map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{"configmaps"}}
	patch := `[JSONPatch{op: "add", path: "/data/x", value: variables.v + resource.Get("v1", "configmaps", "c").metadata.name}]`
	return engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policies.kyverno.io/v1", "kind": "NamespacedMutatingPolicy",
		"metadata": map[string]any{"name": "p", "namespace": fmt.Sprintf("n%d", i)},
		"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{rule}},
			"variables":        []any{map[string]any{"name": "v", "expression": `"a"`}},
			"mutations":        []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": patch}}},
		},
	}}, "")
}

// What a policy keeps is its own: the functions of the language, fifty times as much, are shared by
// all namespaces.
func TestNamespacesShareTheLanguage(t *testing.T) {
	const most = 3_500 // bytes for a policy
	kept := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		policies := make([]engine.Document, n)
		for i := range policies {
			policies[i] = namespacedPolicy(i)
		}
		program, err := mutatingpolicy.New(nil).Compile(engine.Compilation{Documents: policies, Release: true})
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
		t.Errorf("policies of 101 namespaces keep %d bytes, one %d: want at most %d more for each", more, once, most)
	}
}
