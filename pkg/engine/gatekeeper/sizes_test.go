package gatekeeper_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper"
)

// mutatorOf returns a mutator for Pods.
func mutatorOf(kind, name, place string, parameters map[string]any) engine.Document {
	spec := map[string]any{"location": place, "parameters": parameters}
	if kind != "AssignMetadata" {
		spec["applyTo"] = []any{map[string]any{"groups": []any{""}, "versions": []any{"v1"}, "kinds": []any{"Pod"}}}
	}
	version := "v1"
	if kind == "AssignImage" {
		version = "v1alpha1"
	}
	return engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "mutations.gatekeeper.sh/" + version, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}, "")
}

func value(v any) map[string]any { return map[string]any{"assign": map[string]any{"value": v}} }

func podOf(containers int, args []any) *unstructured.Unstructured {
	var list []any
	for i := range containers {
		list = append(list, map[string]any{"name": fmt.Sprintf("c%d", i), "image": "a/b:c", "args": args})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": "n"}, "spec": map[string]any{"containers": list},
	}}
}

func textsOf(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = fmt.Sprintf("text-%d", i)
	}
	return out
}

// collector keeps the steps that changed something or failed.
type collector struct{ changed, failed []engine.Step }

func (*collector) Wants(engine.Outcome) bool { return false }

func (*collector) NotMatched(engine.RuleList) {}

func (c *collector) Step(s engine.Step) {
	switch s.Outcome {
	case engine.Changed:
		c.changed = append(c.changed, s)
	case engine.Failed:
		c.failed = append(c.failed, s)
	}
}

// mutated compiles mutators and evaluates them on an object; allocated is what that took, in
// bytes.
func mutated(t *testing.T, documents []engine.Document, u *unstructured.Unstructured) (steps *collector, allocated uint64) {
	t.Helper()
	steps = &collector{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	program, err := gatekeeper.New().Compile(engine.Compilation{Documents: documents})
	if err != nil {
		t.Fatal(err)
	}
	target := engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u}
	if _, err := program.Evaluate(t.Context(), target, &engine.World{Limits: engine.DefaultLimits()}, steps); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return steps, after.TotalAlloc - before.TotalAlloc
}

// Twice the input takes at most 2.2 times as much, at sizes where what grows by steps has taken
// as many for both.
func TestSizesAreLinear(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		run  func(n int) ([]engine.Document, *unstructured.Unstructured)
	}{
		"mutators": {1000, func(n int) (out []engine.Document, u *unstructured.Unstructured) {
			for i := range n {
				out = append(out, mutatorOf("Assign", fmt.Sprintf("a%d", i), fmt.Sprintf("spec.containers[name: c%d].x", i%5), value("v")))
			}
			return out, podOf(5, nil)
		}},
		"mutators of other places": {1000, func(n int) (out []engine.Document, u *unstructured.Unstructured) {
			for i := range n {
				place := fmt.Sprintf("spec.x%d.y", i)
				out = append(out, mutatorOf("Assign", fmt.Sprintf("a%d", i), place, map[string]any{
					"assign": map[string]any{"value": "v"}, "pathTests": []any{map[string]any{"subPath": place, "condition": "MustExist"}},
				}))
			}
			return out, podOf(5, nil)
		}},
		"elements": {2000, func(n int) ([]engine.Document, *unstructured.Unstructured) {
			return []engine.Document{mutatorOf("Assign", "a", "spec.containers[name: *].x", value("v"))}, podOf(n, nil)
		}},
		"values": {4000, func(n int) ([]engine.Document, *unstructured.Unstructured) {
			values := map[string]any{"values": map[string]any{"fromList": textsOf(n)}}
			return []engine.Document{mutatorOf("ModifySet", "a", "spec.containers[name: *].args", values)}, podOf(2, textsOf(n)[n/2:])
		}},
		"bytes of a value": {1_000_000, func(n int) ([]engine.Document, *unstructured.Unstructured) {
			return []engine.Document{mutatorOf("Assign", "a", "spec.containers[name: *].x", value(strings.Repeat("a", n)))}, podOf(10, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			documents, u := c.run(c.size)
			mutated(t, documents, u) // what is made once
			steps, once := mutated(t, documents, u)
			documents, u = c.run(2 * c.size)
			more, twice := mutated(t, documents, u)
			if len(steps.failed)+len(more.failed) > 0 || name != "mutators of other places" && len(more.changed) == 0 {
				t.Fatalf("%v, %v", steps.failed, more.failed)
			}
			if float64(twice) > 2.2*float64(once)+100_000 {
				t.Errorf("%d bytes are allocated for %d, %d for twice as much", once, c.size, twice)
			}
		})
	}
}

// Every kind of mutator ends within its budget, whatever it is given.
func TestEveryKindIsBounded(t *testing.T) {
	long := strings.Repeat("a", 30_000_000)
	lists := make([]any, 20_000)
	for i := range lists {
		lists[i] = []any{int64(i), map[string]any{"a": int64(i)}}
	}
	many := func(kind string, place func(i int) string, parameters map[string]any) (out []engine.Document) {
		for i := range 3000 {
			out = append(out, mutatorOf(kind, fmt.Sprintf("a%d", i), place(i), parameters))
		}
		return out
	}
	fromList := func(values []any) map[string]any { return map[string]any{"values": map[string]any{"fromList": values}} }
	for name, c := range map[string]struct {
		mutators []engine.Document
		args     []any
	}{
		"a long text":    {mutators: []engine.Document{mutatorOf("Assign", "a", "spec.containers[name: *].x", value(long))}},
		"a long list":    {mutators: []engine.Document{mutatorOf("Assign", "a", "spec.containers[name: *].x", value(lists))}},
		"many places":    {mutators: many("Assign", func(i int) string { return fmt.Sprintf("spec.containers[name: *].x%d", i) }, value("v"))},
		"many elements":  {mutators: many("Assign", func(i int) string { return fmt.Sprintf("spec.containers[name: d%d].x", i) }, value("v"))},
		"many labels":    {mutators: many("AssignMetadata", func(i int) string { return fmt.Sprintf("metadata.labels.x%d", i) }, value("v"))},
		"a long label":   {mutators: many("AssignMetadata", func(i int) string { return fmt.Sprintf("metadata.labels.x%d", i) }, value(long))},
		"a set of texts": {mutators: []engine.Document{mutatorOf("ModifySet", "a", "spec.containers[name: *].args", fromList(textsOf(20_000)))}, args: textsOf(40_000)},
		"a set of lists": {mutators: []engine.Document{mutatorOf("ModifySet", "a", "spec.containers[name: *].args", fromList(lists))}, args: lists},
		"a pruned set":   {mutators: []engine.Document{mutatorOf("ModifySet", "a", "spec.containers[name: *].args", map[string]any{"operation": "prune", "values": map[string]any{"fromList": lists}})}, args: lists},
		"many images":    {mutators: many("AssignImage", func(i int) string { return fmt.Sprintf("spec.containers[name: *].x%d", i) }, map[string]any{"assignTag": ":1"})},
		"a fight without end": {mutators: []engine.Document{
			mutatorOf("AssignImage", "a", "spec.containers[name: *].image", map[string]any{"assignTag": ":1"}),
			mutatorOf("AssignImage", "b", "spec.containers[name: *].image", map[string]any{"assignTag": ":2"}),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			steps, allocated := mutated(t, c.mutators, podOf(1000, c.args))
			if allocated > 200<<20 {
				t.Errorf("%d MB are allocated", allocated>>20)
			}
			var limit *engine.LimitError
			for _, s := range steps.failed {
				if !errors.As(s.Err, &limit) && name != "a fight without end" {
					t.Errorf("%v", s.Err)
				}
			}
		})
	}
}

func TestLimitsOfMutators(t *testing.T) {
	types := mutatorOf("Assign", "a", "spec.x", value("v"))
	types.Object().Object["spec"].(map[string]any)["applyTo"] = []any{map[string]any{"groups": textsOf(50), "versions": textsOf(50), "kinds": textsOf(50)}}
	conflicts := make([]engine.Document, 0, 200)
	for i := range 200 {
		place := "spec.x"
		if i%2 == 0 {
			place = "spec[name: *].x"
		}
		conflicts = append(conflicts, mutatorOf("Assign", fmt.Sprintf("a%d", i), place, value("v")))
	}
	for want, documents := range map[string][]engine.Document{
		"125000 types, more than 1000":       {types},
		"the path has more than 10000 bytes": {mutatorOf("Assign", "a", "spec."+strings.Repeat("a", 10_000), value("v"))},
		"the path has more than 256 nodes":   {mutatorOf("Assign", "a", "spec"+strings.Repeat(".a", 1000), value("v"))},
		"180 more":                           conflicts,
	} {
		_, err := gatekeeper.New().Compile(engine.Compilation{Documents: documents})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.500v, want %s", err, want)
		}
	}
}
