package cel

import (
	"fmt"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// replacedLists warns about lists of the live object of which a merge loses elements because the
// schema says nothing of them. What it says is taken at its word.
func replacedLists(live map[string]any, patch *typed.TypedValue) []engine.Warning {
	var out []engine.Warning
	walk := openLists{schema: patch.Schema(), found: func(path fieldpath.Path, gone int) {
		out = append(out, engine.Warning(fmt.Sprintf("%s: the schema says nothing of this list, so it is replaced as a whole, as a server does; %d live elements differ or are gone. "+
			"Of manifests, give the CustomResourceDefinition with -f or --world", engine.PathString(path), gone)))
	}}
	walk.in(nil, patch.TypeRef(), value.NewValueInterface(live), patch.AsValue())
	return out
}

// openLists finds lists of which a schema says nothing.
type openLists struct {
	schema *schema.Schema
	found  func(path fieldpath.Path, gone int)
}

func (w *openLists) in(path fieldpath.Path, ref schema.TypeRef, live, patch value.Value) {
	atom, ok := w.schema.Resolve(ref)
	switch {
	case !ok || live == nil || patch == nil:
	case patch.IsMap() && live.IsMap() && atom.Map != nil:
		names := []string{}
		patch.AsMap().Iterate(func(key string, _ value.Value) bool { names = append(names, key); return true })
		slices.Sort(names)
		for _, name := range names {
			ref := atom.Map.ElementType
			if field, ok := atom.Map.FindField(name); ok {
				ref = field.Type
			}
			was, _ := live.AsMap().Get(name)
			is, _ := patch.AsMap().Get(name)
			w.in(append(path[:len(path):len(path)], fieldpath.PathElement{FieldName: &name}), ref, was, is)
		}
	case patch.IsList() && live.IsList() && atom.Scalar != nil && atom.Map != nil: // it may be anything
		if gone := missingFrom(patch.AsList(), live.AsList()); gone > 0 {
			w.found(path, gone)
		}
	}
}

// missingFrom counts the elements of one list that another does not have.
func missingFrom(list, of value.List) int {
	known := map[string]bool{}
	for i := range list.Length() {
		known[value.ToString(list.At(i))] = true
	}
	n := 0
	for i := range of.Length() {
		if !known[value.ToString(of.At(i))] {
			n++
		}
	}
	return n
}
