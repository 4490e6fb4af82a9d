package cel

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// replacedLists warns of lists in live data that lose elements in a merge with a patch because the schema
// does not describe them. Described lists are trusted.
func replacedLists(
	path fieldpath.Path, s *schema.Schema, ref schema.TypeRef, live, patch any,
) (out []engine.Warning) {
	atom, _ := s.Resolve(ref)
	fields, _ := live.(map[string]any)
	patched, _ := patch.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(patched)) {
		if atom.Map == nil {
			break
		}
		ref := atom.Map.ElementType
		if field, ok := atom.Map.FindField(name); ok {
			ref = field.Type
		}
		at := append(path[:len(path):len(path)], fieldpath.PathElement{FieldName: &name})
		out = append(out, replacedLists(at, s, ref, fields[name], patched[name])...)
	}
	list, isList := patch.([]any)
	if anything := atom.Scalar != nil && atom.Map != nil; !isList || !anything {
		return out
	}
	text := func(item any) string { return value.ToString(value.NewValueInterface(item)) }
	kept := map[string]bool{}
	for _, item := range list {
		kept[text(item)] = true
	}
	list, _ = live.([]any)
	gone := slices.DeleteFunc(slices.Clone(list), func(item any) bool { return kept[text(item)] })
	if len(gone) > 0 {
		out = append(out, engine.Warning(fmt.Sprintf("%s: the schema says nothing of this list, so it is replaced as a whole, as a server does; %d live elements differ or are gone. "+
			"Of manifests, give the CustomResourceDefinition with -f or --world", engine.PathString(path), len(gone))))
	}
	return out
}
