package celpatch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// merge merges an apply configuration into an object by the schema of its kind,
// without a look at who owns what (pkg/admission/plugin/policy/mutating/patch in
// k8s.io/apiserver).
func merge(live map[string]any, v ref.Val, types managedfields.TypeConverter, m Merge) (Result, error) {
	fields, err := configurationOf(v)
	if err != nil {
		return Result{}, err
	}
	kind := asObject(live).GroupVersionKind()
	if types == nil {
		return Result{}, noSchema(kind)
	}
	patch := asObject(fields)
	patch.SetGroupVersionKind(kind)
	patchTyped, err := types.ObjectToTyped(patch)
	if err != nil {
		return Result{}, fmt.Errorf("invalid apply configuration: %w", err)
	}
	if atomics := atomicPaths(patchTyped); m == RefuseAtomic && len(atomics) > 0 {
		return Result{}, &AtomicError{Paths: atomics}
	}
	liveTyped, err := types.ObjectToTyped(asObject(live), typed.AllowDuplicates)
	if err != nil {
		return Result{}, fmt.Errorf("the object does not fit the schema of %s: %w", kindText(kind), err)
	}
	merged, err := liveTyped.Merge(patchTyped)
	if err != nil {
		return Result{}, fmt.Errorf("merge the apply configuration: %w", err)
	}
	out, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return Result{}, fmt.Errorf("merge the apply configuration: the result is no object")
	}
	return Result{Object: out}, nil
}

// configurationOf is an apply configuration as an object of its own.
func configurationOf(v ref.Val) (map[string]any, error) {
	configuration, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("an apply configuration must be an Object, not %s", v.Type().TypeName())
	}
	if err := configuration.checkNames(); err != nil {
		return nil, err
	}
	fields, err := native(configuration)
	if err != nil {
		return nil, fmt.Errorf("invalid apply configuration: %w", err)
	}
	return fields.(map[string]any), nil
}

// AtomicError is an apply configuration that holds values which can only be
// replaced as a whole.
type AtomicError struct{ Paths []string }

// Error is the server's text, and the way out.
func (e *AtomicError) Error() string {
	return "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: " + strings.Join(e.Paths, ", ") +
		" (a JSONPatch mutation can)"
}

// atomicPaths lists the atomic values of an apply configuration, in order.
func atomicPaths(v *typed.TypedValue) []string {
	var found []string
	findAtomics(&found, nil, atomicWalk{schema: v.Schema(), ref: v.TypeRef(), value: v.AsValue()})
	slices.Sort(found)
	return slices.Compact(found)
}

// atomicWalk is a value of an apply configuration and its type.
type atomicWalk struct {
	schema *schema.Schema
	ref    schema.TypeRef
	value  value.Value
}

func findAtomics(found *[]string, path fieldpath.Path, w atomicWalk) {
	atom, ok := w.schema.Resolve(w.ref)
	switch {
	case !ok || w.value == nil:
	case w.value.IsMap() && atom.Map != nil:
		if atom.Map.ElementRelationship == schema.Atomic {
			*found = append(*found, path.String())
		}
		w.value.AsMap().Iterate(func(key string, v value.Value) bool {
			if field, ok := atom.Map.FindField(key); ok {
				findAtomics(found, append(path[:len(path):len(path)], fieldpath.PathElement{FieldName: &key}),
					atomicWalk{schema: w.schema, ref: field.Type, value: v})
			}
			return true
		})
	case w.value.IsList() && atom.List != nil:
		if atom.List.ElementRelationship == schema.Atomic {
			*found = append(*found, path.String())
		}
		list := w.value.AsList()
		for i := range list.Length() {
			findAtomics(found, append(path[:len(path):len(path)], fieldpath.PathElement{Index: &i}),
				atomicWalk{schema: w.schema, ref: atom.List.ElementType, value: list.At(i)})
		}
	}
}
