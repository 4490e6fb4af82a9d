package kyverno

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// A text begins with one of many names if it begins with one of them, each asked by itself.
func TestBeginsWithOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	text := func() string {
		var b strings.Builder
		for range r.IntN(5) {
			b.WriteByte("abc"[r.IntN(3)])
		}
		return b.String()
	}
	found := 0
	for range 20_000 {
		var names []string
		for range r.IntN(6) {
			names = append(names, text())
		}
		slices.Sort(names)
		one := text() + text()
		want := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(one, name) })
		if got := beginsWithOne(one, names); got != want {
			t.Fatalf("%q, %q: got %t", one, names, got)
		}
		if want {
			found++
		}
	}
	if found < 2000 || found > 18_000 {
		t.Errorf("%d texts begin with one", found)
	}
}

// What the user gives values costs a rule nothing that does not use it, whether compiled or evaluated.
func TestGivenValuesAreShared(t *testing.T) {
	allocated := func(values int) (compiling, evaluating float64) {
		lines := make([]string, values)
		for i := range lines {
			lines[i] = fmt.Sprintf("name%d: x", i)
		}
		var documents []engine.Document
		for _, text := range []string{
			"{apiVersion: cli.kyverno.io/v1alpha1, kind: Values, metadata: {name: v}, globalValues: {" + strings.Join(lines, ", ") + "}}",
			"{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {patchStrategicMerge: {data: {x: '{{ name1 }}'}}}}]}}",
		} {
			documents = append(documents, engine.NewDocument(conformance.ReadObjects(t, text)[0], ""))
		}
		program, err := New().Compile(engine.Compilation{Documents: documents})
		if err != nil {
			t.Fatal(err)
		}
		target, world := conformance.TargetOf(conformance.ReadObjects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}")[0]), conformance.NewWorld()
		evaluating = testing.AllocsPerRun(10, func() {
			object, err := program.Evaluate(t.Context(), target, world, quiet{})
			if err != nil || mapping(object.Object["data"])["x"] != "x" {
				t.Fatalf("got %v, error %v", object, err)
			}
		})
		one := documents[1:]
		compiling = testing.AllocsPerRun(10, func() {
			if _, err := New().Compile(engine.Compilation{Documents: append(slices.Repeat(one, 50), documents[0])}); err != nil {
				t.Fatal(err)
			}
		})
		return compiling, evaluating
	}
	fewCompiling, few := allocated(10)
	manyCompiling, many := allocated(2000)
	if many > few+10 {
		t.Errorf("%.0f allocations with 10 values, %.0f with 2,000", few, many)
	}
	if most := fewCompiling + 10*2000; manyCompiling > most {
		t.Errorf("compiling 50 policies takes %.0f allocations with 10 values, %.0f with 2,000", fewCompiling, manyCompiling)
	}
}

// A rule that never applies is told, unless finding out takes too long.
func TestExcludesOfManyFilters(t *testing.T) {
	told := func(n int) bool {
		filters := func(from, step int) string {
			all := make([]string, n)
			for i := range all {
				all[i] = fmt.Sprintf("{resources: {kinds: [ConfigMap], names: [name%d]}}", from+i*step)
			}
			return strings.Join(all, ", ")
		}
		text := fmt.Sprintf("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [%s]}, exclude: {any: [%s]}, "+
			"mutate: {patchStrategicMerge: {data: {x: y}}}}]}}", filters(0, 1), filters(n-1, -1))
		var said []string
		_, err := New().Compile(engine.Compilation{
			Documents: []engine.Document{engine.NewDocument(conformance.ReadObjects(t, text)[0], "")},
			Warn:      func(e engine.CompileError) { said = append(said, e.Error()) },
		})
		if err != nil {
			said = append(said, err.Error())
		}
		return strings.Contains(strings.Join(said, "\n"), "excludes all that the rule matches")
	}
	if most := 31; !told(most) { // a thousand pairs
		t.Errorf("it is not told that %d filters exclude all", most)
	}
	if more := 32; told(more) {
		t.Errorf("%d filters were compared with as many", more)
	}
}
