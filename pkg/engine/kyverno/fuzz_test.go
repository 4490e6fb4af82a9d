package kyverno

import (
	"io"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// FuzzCompile holds that no text, read as a policy, makes compiling it or
// evaluating it panic.
func FuzzCompile(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(archive.Files[0].Data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			u.Object = map[string]any{"spec": text}
		}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"})
		c := engine.Compilation{Documents: []engine.Document{{Object: u}}, Limits: engine.DefaultLimits(), Annotate: true}
		program, _ := New().Compile(c)
		for _, live := range oddObjects() {
			evaluateAll(t, program, targetOf(live))
		}
	})
}

// oddObjects are an ordinary object and one that no server would hold.
func oddObjects() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop"}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": "none", "spec": map[string]any{"containers": []any{nil, "x"}}}},
	}
}

// evaluateAll runs the rules on the object, and those with targets also as if
// it were their target.
func evaluateAll(t *testing.T, program engine.Program, target engine.Target) {
	sink := reasons{io.Discard}
	if _, err := program.Evaluate(t.Context(), target, conformance.NewWorld(), sink); err != nil {
		t.Fatal(err)
	}
	effects, err := program.(engine.Propagator).Effects(t.Context(), target, conformance.NewWorld(), sink)
	if err != nil {
		t.Fatal(err)
	}
	for _, effect := range effects {
		if _, err := effect.Apply(t.Context(), target, conformance.NewWorld(), sink); err != nil {
			t.Fatal(err)
		}
	}
}
