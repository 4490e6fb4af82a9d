package kyverno

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

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
