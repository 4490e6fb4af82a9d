package cel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Result is a mutated object.
type Result struct {
	// Object is the object after the mutation. It may share data with the original, and is the original if a
	// test operation of a JSON patch fails.
	Object map[string]any
	// Patched are the fields in a JSON patch, after it.
	Patched map[string]any
	// Warnings are differences between versions of an API server.
	Warnings []engine.Warning
}

// The result types of mutations.
//
//nolint:gochecknoglobals // which nobody changes
var (
	applyConfigurations = cel.ObjectType(mutation.ObjectTypeName)
	jsonPatches         = cel.ListType(cel.ObjectType(mutation.JSONPatchTypeName))
)

// ErrTypeMismatch is an apply configuration with the type of another field.
var ErrTypeMismatch = errors.New("type mismatch")

// Mutate evaluates a mutation and applies its patch to the evaluation's object, which is not modified:
// Replace continues with the result. An apply configuration is unsupported if the world has no schema of the
// object's kind.
func (e *Evaluation) Mutate(x *Expression, w *engine.World) (r Result, err error) {
	v, err := e.Value(x)
	if err != nil {
		return Result{}, x.At(err)
	}
	defer e.recoverAs(x, &err)
	if x.JSONPatch {
		r, err = e.patch(v)
	} else {
		r, err = e.merge(v.(*dynamic.ObjectVal), w)
	}
	if err != nil && engine.OutcomeOf(err) != engine.Unsupported {
		err = e.errorOf(x, err)
	}
	return r, x.At(err)
}

// evaluated passes the value of an expression to an API server's patcher.
type evaluated struct{ value ref.Val }

// ForInput returns the value, whatever the input.
func (v evaluated) ForInput(context.Context, *admission.VersionedAttributes, *admissionv1.AdmissionRequest,
	plugincel.OptionalVariableBindings, *corev1.Namespace, int64,
) (plugincel.EvaluationResult, int64, error) {
	return plugincel.EvaluationResult{EvalResult: v.value}, 0, nil
}

// CompilationErrors returns none: the expression has been compiled.
func (evaluated) CompilationErrors() []error { return nil }

// interfaces are the patcher's codecs.
//
//nolint:gochecknoglobals // immutable
var interfaces = admission.NewObjectInterfacesFromScheme(runtime.NewScheme())

// maxCopied bounds an object's growth by the copy operations of a JSON patch, like an API server: each may
// double it.
const maxCopied = 3 << 20

var _ = func() int { jsonpatch.AccumulatedCopySizeLimit = maxCopied; return 0 }()

// patch applies a JSON patch, a list of JSONPatch values, to the evaluation's object. An API server's patcher
// writes and reads JSON, so it gets only the patched fields: the whole object would double the time of a run.
func (e *Evaluation) patch(list ref.Val) (Result, error) {
	fields, r := fieldsPatched(e.input.Object, list)
	part := &unstructured.Unstructured{Object: fields}
	kind := part.GroupVersionKind()
	out, err := patch.NewJSONPatcher(evaluated{list}).Patch(e.ctx, patch.Request{
		ObjectInterfaces: interfaces,
		VersionedAttributes: &admission.VersionedAttributes{
			Attributes: admission.NewAttributesRecord(part, nil, kind, "", "", schema.GroupVersionResource{}, "",
				admission.Update, nil, false, nil),
			VersionedKind: kind, VersionedObject: admission.NewLazyObject(part),
		},
	}, celconfig.RuntimeCELCostBudget)
	if err != nil {
		text := strings.Replace(err.Error(), "Internal error occurred", "JSON Patch: the result is no object", 1)
		return Result{}, errors.New(sorted(text, "\n"))
	}
	r.Object, r.Patched = e.input.Object, out.(*unstructured.Unstructured).Object
	if out != part { // no test operation failed
		r.Object = maps.Clone(r.Object)
		maps.DeleteFunc(r.Object, func(name string, _ any) bool { _, given := fields[name]; return given })
		maps.Copy(r.Object, r.Patched)
	}
	return r, nil
}

// fieldsPatched returns the top-level fields of an object in a JSON patch, and its identity; all fields if a
// path is the whole object. The Result has warnings about other versions of an API server.
func fieldsPatched(live map[string]any, list ref.Val) (fields map[string]any, r Result) {
	named, whole := map[string]bool{"apiVersion": true, "kind": true}, false
	for operation := range elementsOf(list) {
		p := operation.(*mutation.JSONPatchVal)
		if len(r.Warnings) == 0 && p.Val != nil && holdsObjectInList(p.Val) {
			r.Warnings = []engine.Warning{objectInList}
		}
		whole = whole || !strings.Contains(p.Path, "/")
		for _, pointer := range []string{p.Path, p.From} {
			named[jsonpointer.Unescape(strings.Split(pointer+"/", "/")[1])] = true
		}
	}
	fields = maps.Clone(live)
	maps.DeleteFunc(fields, func(name string, _ any) bool { return !whole && !named[name] })
	return fields, r
}

// objectInList is the warning about values that API servers before 1.37 cannot convert (kubernetes#142181).
const objectInList = engine.Warning("a list that holds Object{...} as the value of a JSONPatch makes API servers before 1.37 panic: " +
	"write the elements as maps, or use an apply configuration")

// holdsObjectInList reports whether a list or a map has an Object as an element.
func holdsObjectInList(v ref.Val) bool {
	for element := range elementsOf(v) {
		if _, isObject := element.(*dynamic.ObjectVal); isObject || holdsObjectInList(element) {
			return true
		}
	}
	return false
}

// merge merges an apply configuration into the object by the schema of its kind, whoever owns its fields. It
// fails with ErrAtomic unless these values are replaced, and for a value that does not fit the schema.
func (e *Evaluation) merge(configuration *dynamic.ObjectVal, w *engine.World) (Result, error) {
	live := &unstructured.Unstructured{Object: e.input.Object}
	s, err := w.Schema(e.ctx, live.GroupVersionKind())
	types := s.Types
	switch {
	case err != nil:
		return Result{}, &engine.UnsupportedError{Err: fmt.Errorf("the schema of the object cannot be read: %w", err)}
	case types == nil:
		return Result{}, &engine.UnsupportedError{Err: fmt.Errorf("an apply configuration cannot be merged without the schema of %s %s, and a guess could lose data: "+
			"none is published or built in; for files, give its CustomResourceDefinition with -f or --world", live.GetAPIVersion(), live.GetKind())}
	}
	if err := configuration.CheckTypeNamesMatchFieldPathNames(); err != nil {
		return Result{}, fmt.Errorf("%w: %s", ErrTypeMismatch, sorted(err.Error(), "\n"))
	}
	fields, err := native(configuration.Value())
	if err != nil {
		return Result{}, fmt.Errorf("invalid apply configuration: %w", err)
	}
	part := &unstructured.Unstructured{Object: fields.(map[string]any)}
	if len(part.Object) == 0 { // as if a mutation's condition does not hold
		return Result{Object: live.Object}, nil
	}
	part.SetGroupVersionKind(live.GroupVersionKind())
	partTyped, err := types.ObjectToTyped(part)
	if err != nil {
		return Result{}, fmt.Errorf("invalid apply configuration: %w", err)
	}
	merge := func() (runtime.Object, error) { return patch.ApplyStructuredMergeDiff(types, live, part) }
	if e.input.ReplaceAtomic {
		merge = func() (runtime.Object, error) { return replace(types, live, partTyped) }
	}
	merged, err := merge()
	if err != nil {
		return Result{}, mergeError(err, live)
	}
	return Result{
		Object:   merged.(*unstructured.Unstructured).Object,
		Warnings: replacedLists(nil, partTyped.Schema(), partTyped.TypeRef(), live.Object, part.Object),
	}, nil
}

// replace merges an apply configuration like Kyverno's useServerSideApply: its atomic values replace those in
// the object.
func replace(
	types managedfields.TypeConverter, live *unstructured.Unstructured, part *typed.TypedValue,
) (runtime.Object, error) {
	liveTyped, err := types.ObjectToTyped(live, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf(unfitLive+"%w", err)
	}
	merged, err := liveTyped.Merge(part)
	if err != nil {
		return nil, err
	}
	return types.TypedToObject(merged)
}

// unfitLive is an API server's error prefix (pkg/admission/plugin/policy/mutating/patch).
const unfitLive = "failed to convert original object to typed object: "

// mergeError adds a hint to the error of an apply configuration.
func mergeError(err error, live *unstructured.Unstructured) error {
	if paths, ok := strings.CutPrefix(err.Error(), ErrAtomic.Error()+": "); ok {
		return fmt.Errorf("%w: %s (a JSONPatch mutation can)", ErrAtomic, sorted(paths, ", "))
	}
	if text, ok := strings.CutPrefix(err.Error(), unfitLive); ok {
		return fmt.Errorf("the object does not fit the schema of %s %s: %s", live.GetAPIVersion(), live.GetKind(), text)
	}
	return fmt.Errorf("merge the apply configuration: %w", err)
}

// sorted sorts the parts of a library's error, which come in random order.
func sorted(text, separator string) string {
	return strings.Join(slices.Sorted(strings.SplitSeq(text, separator)), ", ")
}

// native copies a value as an object of Kubernetes can hold it. An API server does not convert a map or list
// literal inside of another one (convertField in pkg/cel/mutation/dynamic of k8s.io/apiserver).
func native(v any) (any, error) {
	switch v := v.(type) {
	case bool, int64, string, nil:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is no number of JSON", v)
		}
		return v, nil
	case uint64:
		return int64(v), nil // a server's integers fit
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			var err error
			if out[name], err = native(v[name]); err != nil {
				return nil, fmt.Errorf("field %q: %w", name, err)
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			var err error
			if out[i], err = native(item); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return out, nil
	case map[ref.Val]ref.Val, []ref.Val:
		return nil, errNested
	case structpb.NullValue:
		return nil, errors.New("null is nothing that an Object can hold: leave the field out, as ?field: optional.none() does")
	case error:
		return nil, v
	case []byte:
		return nil, errors.New("a bytes is nothing that an object can hold: convert it to a string")
	}
	return nil, fmt.Errorf("a %T is nothing that an object can hold: convert it to a string", v)
}

var errNested = errors.New("a {...} or [...] within another one is not converted, by API servers or by Kyverno 1.19: " +
	"write Object.x{...} with the path of the field, such as Object.spec{...}, for each map but the innermost")

// patchTypes are the types Object, Object.x and JSONPatch.
type patchTypes struct{ mutation.DynamicTypeResolver }

// Resolve implements common.TypeResolver.
func (r *patchTypes) Resolve(name string) (common.ResolvedType, bool) {
	t, ok := r.DynamicTypeResolver.Resolve(name)
	if object, isObject := t.(*dynamic.ObjectType); isObject {
		t = objectType{object}
	}
	return t, ok
}

// objectType is a type of Objects. A field with a list joined by + cannot hold {...} or [...]: API servers
// convert these only from 1.37 on, and a patch must also be right for 1.36.
type objectType struct{ *dynamic.ObjectType }

// Val implements common.ResolvedType.
func (t objectType) Val(fields map[string]ref.Val) ref.Val {
	for name, v := range fields {
		if _, isList := v.(traits.Lister); !isList || isNative(v) {
			continue
		}
		if joined, ok := v.Value().([]any); ok {
			if _, err := native(joined); errors.Is(err, errNested) {
				fields[name] = types.WrapErr(errNested)
			}
		}
	}
	return t.ObjectType.Val(fields)
}
