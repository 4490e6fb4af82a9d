package gatekeeper_test

import (
	"fmt"
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

func textsOf(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = fmt.Sprintf("text-%d", i)
	}
	return out
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
