package variables

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// ValuesNamespaces returns the Namespaces that a Values document describes, by name.
// Add reports what is wrong with the document.
func ValuesNamespaces(document *unstructured.Unstructured) []*unstructured.Unstructured {
	return namespaces(policydecode.Node{Report: &policydecode.Report{Warn: func(engine.CompileError) {}}, Value: document.Object}.Fields())
}

// namespaces reads the labels under namespaceSelector, and whole objects under
// namespaces, which come first.
func namespaces(f *policydecode.Fields) []*unstructured.Unstructured {
	found := map[string]valuesTree{}
	for _, n := range f.At("namespaceSelector").List() {
		one := n.Fields()
		labels := valuesTree{}
		for name, value := range one.At("labels").TextMap() {
			labels[name] = value
		}
		if name := one.At("name").Required(); name != "" {
			found[name] = valuesTree{"name": name, "labels": labels}
		}
		one.Done()
	}
	for _, n := range f.At("namespaces").List() {
		one := n.Fields()
		metadata := one.At("metadata").Fields()
		if name := metadata.At("name").Required(); name != "" {
			found[name] = metadata.Values
		}
	}
	var out []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, &unstructured.Unstructured{Object: valuesTree{
			"apiVersion": "v1", "kind": "Namespace", "metadata": found[name],
		}})
	}
	return out
}
