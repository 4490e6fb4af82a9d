package variables_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Twice the values take about twice the memory, however they are given.
func TestValuesAreLinear(t *testing.T) {
	for name, read := range map[string]func(n int){
		"globalValues": func(n int) {
			add(variables.NewValues(), object{"globalValues": many(n, func(i int) (string, any) { return fmt.Sprintf("v%d", i), "x" })})
		},
		"one mapping": func(n int) {
			add(variables.NewValues(), object{"globalValues": many(n, func(i int) (string, any) { return fmt.Sprintf("a.v%d", i), "x" })})
		},
		"documents": func(n int) {
			v := variables.NewValues()
			for i := range n {
				add(v, object{"globalValues": object{fmt.Sprintf("a.v%d", i): "x"}})
			}
		},
		"values of one object, in parts": func(n int) {
			v := variables.NewValues()
			for i := range n {
				add(v, object{"policies": []any{object{"name": "p", "resources": []any{object{"name": "o", "values": object{fmt.Sprint("v", i): "x"}}}}}})
			}
		},
		"values of one rule, in parts": func(n int) {
			v := variables.NewValues()
			for i := range n {
				add(v, object{"policies": []any{object{"name": "p", "rules": []any{object{"name": "r", "values": object{fmt.Sprint("v", i): "x"}}}}}})
			}
		},
		"values of an element": func(n int) {
			v := variables.NewValues()
			add(v, object{"policies": []any{object{"name": "p", "rules": []any{object{"name": "r", "foreachValues": many(n, func(i int) (string, any) {
				return fmt.Sprint("a.v", i), []any{"x"}
			})}}}}})
			v.Element("p", "r", 0, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := allocated(func() { read(4000) }), allocated(func() { read(8000) })
			if ratio := float64(two) / float64(one); ratio > 2.5 {
				t.Errorf("twice the values take %.1f times the memory", ratio)
			}
		})
	}
}

func many(n int, value func(int) (string, any)) object {
	out := make(object, n)
	for i := range n {
		key, v := value(i)
		out[key] = v
	}
	return out
}

func add(v *variables.Values, document object) {
	v.Add(policydecode.Node{Report: &policydecode.Report{}, Value: document})
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
