package cel

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// replacedLists warns of lists in the live object that lose elements in a merge because the schema does not
// describe them. Described lists are trusted.
func replacedLists(live map[string]any, patch *typed.TypedValue) []engine.Warning {
	w := openLists{schema: patch.Schema()}
	w.find(nil, patch.TypeRef(), live, patch.AsValue().Unstructured())
	return w.found
}

// openLists finds lists that a schema does not describe.
type openLists struct {
	schema *schema.Schema
	found  []engine.Warning
}

func (w *openLists) find(path fieldpath.Path, ref schema.TypeRef, live, patch any) {
	atom, ok := w.schema.Resolve(ref)
	if !ok {
		return
	}
	switch is := patch.(type) {
	case map[string]any:
		was, _ := live.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(is)) {
			if atom.Map == nil || was[name] == nil {
				continue
			}
			ref := atom.Map.ElementType
			if field, ok := atom.Map.FindField(name); ok {
				ref = field.Type
			}
			w.find(append(path[:len(path):len(path)], fieldpath.PathElement{FieldName: &name}), ref,
				was[name], is[name])
		}
	case []any:
		if was, _ := live.([]any); atom.Scalar != nil && atom.Map != nil { // any type
			w.list(path, was, is)
		}
	}
}

func (w *openLists) list(path fieldpath.Path, live, patch []any) {
	text := func(item any) string { return value.ToString(value.NewValueInterface(item)) }
	known, gone := map[string]bool{}, 0
	for _, item := range patch {
		known[text(item)] = true
	}
	for _, item := range live {
		if !known[text(item)] {
			gone++
		}
	}
	if gone > 0 {
		w.found = append(w.found, engine.Warning(fmt.Sprintf("%s: the schema says nothing of this list, so it is replaced as a whole, as a server does; %d live elements differ or are gone. "+
			"Of manifests, give the CustomResourceDefinition with -f or --world", engine.PathString(path), gone)))
	}
}
