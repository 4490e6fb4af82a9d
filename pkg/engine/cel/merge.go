package cel

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Atomics is the treatment of an apply configuration with an atomic list, map or struct:
// one that can only be replaced as a whole.
type Atomics int

const (
	// RefuseAtomic fails with an *AtomicError, as a MutatingAdmissionPolicy does:
	// fields that such a value leaves out would be lost.
	RefuseAtomic Atomics = iota
	// ReplaceAtomic replaces atomic values, as server-side apply does.
	ReplaceAtomic
)

// merge merges an apply configuration, which is what Object{...} evaluates to,
// into the object of the evaluation by the schema of its kind, no matter who owns its fields
// (pkg/admission/plugin/policy/mutating/patch in k8s.io/apiserver). The object that
// it returns may share data with both.
//
// It fails with a *noSchemaError where the types are nil, with an *AtomicError, and
// where a value does not fit the schema.
func (e *Evaluation) merge(configuration ref.Val, types managedfields.TypeConverter, a Atomics) (Result, error) {
	in := &e.activation.input
	fields, err := fieldsOf(configuration)
	if err != nil {
		return Result{}, err
	}
	if in.Draft.OwnsPartOf(fields) { // a part of the object, which a later mutation may change in place
		fields = runtime.DeepCopyJSON(fields)
	}
	kind := asObject(in.Object).GroupVersionKind()
	if types == nil {
		return Result{}, &noSchemaError{Kind: kind}
	}
	known, all := in.Checked.of(in.Object), 0
	if len(fields) == 0 && known.fitsAs(types) { // as of a mutation whose condition does not hold
		in.Checked.merged(known, in.Object, all, size{})
		return Result{Object: in.Object}, nil
	}
	patch := asObject(fields)
	patch.SetGroupVersionKind(kind)
	patchTyped, err := types.ObjectToTyped(patch)
	if err != nil {
		return Result{}, fmt.Errorf("invalid apply configuration: %w", err)
	}
	if atomics := atomicPaths(patchTyped); a == RefuseAtomic && len(atomics) > 0 {
		return Result{}, &AtomicError{Paths: atomics}
	}
	if !known.fitsAs(types) {
		read, err := measure(e.budget, in.Object)
		if err != nil {
			return Result{}, err
		}
		if _, err := typedObject(types, in.Object); err != nil {
			return Result{}, err
		}
		all = read.steps()
	}
	narrow := narrowing{schema: patchTyped.Schema(), draft: in.Draft}
	if narrow.draft == nil {
		narrow.draft = &engine.Draft{} // which copies each map once
	}
	live, _ := narrow.part(patchTyped.TypeRef(), in.Object, fields).(map[string]any)
	if _, err := measure(e.budget, live); err != nil {
		return Result{}, err
	}
	liveTyped, err := typedObject(types, live)
	if err != nil {
		return Result{}, err
	}
	merged, err := liveTyped.Merge(patchTyped)
	if err != nil {
		return Result{}, fmt.Errorf("merge the apply configuration: %w", err)
	}
	out, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return Result{}, fmt.Errorf("merge the apply configuration: the result is no object")
	}
	written, err := measure(e.budget, fields)
	if err != nil {
		return Result{}, err
	}
	out, _ = narrow.put(patchTyped.TypeRef(), in.Object, fields, out).(map[string]any)
	in.Checked.merged(known, out, all, written)
	return Result{Object: out, Warnings: replacedLists(liveTyped, patchTyped)}, nil
}

// typedObject returns an object, or a part of one, with its types.
func typedObject(types managedfields.TypeConverter, fields map[string]any) (*typed.TypedValue, error) {
	out, err := types.ObjectToTyped(asObject(fields), typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("the object does not fit the schema of %s: %w", kindText(asObject(fields).GroupVersionKind()), err)
	}
	return out, nil
}

// fieldsOf converts an apply configuration to an object.
func fieldsOf(v ref.Val) (map[string]any, error) {
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

// asObject wraps an object for access to its metadata.
func asObject(m map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: m}
}

// replacedLists warns about lists of the live object of which a merge loses elements because the
// schema says nothing of them. What it says is taken at its word.
func replacedLists(live, patch *typed.TypedValue) []engine.Warning {
	var out []engine.Warning
	walk := openLists{schema: patch.Schema(), found: func(path fieldpath.Path, gone int) {
		out = append(out, engine.Warning(fmt.Sprintf("%s: the schema says nothing of this list, so it is replaced as a whole, as a server does; %d live elements differ or are gone. "+
			"Of manifests, give the CustomResourceDefinition with -f or --world", engine.PathString(path), gone)))
	}}
	walk.in(nil, patch.TypeRef(), live.AsValue(), patch.AsValue())
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

// atomicPaths returns the paths of the atomic values of an apply configuration, sorted.
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
