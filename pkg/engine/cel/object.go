package cel

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/types/known/structpb"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// patchEnvOptions declares the types Object, Object.spec and so on, and JSONPatch, with
// the functions for the latter. They wrap the types that an environment has: what
// declares types of its own comes before them.
func patchEnvOptions() []cel.EnvOption {
	return []cel.EnvOption{common.ResolverEnvOption(resolver{}), library.JSONPatch()}
}

// resolver resolves the types that patches are made of. Unlike the API server's own, it
// bounds the size of an Object, and its Objects may be elements of a list.
type resolver struct{}

var _ common.TypeResolver = resolver{}

// Resolve returns a type: Object, Object.spec and so on, and JSONPatch.
func (resolver) Resolve(name string) (common.ResolvedType, bool) {
	if name == mutation.JSONPatchTypeName {
		return &mutation.JSONPatchType{}, true
	}
	if name == mutation.ObjectTypeName || strings.HasPrefix(name, mutation.ObjectTypeName+".") {
		return objectType{types.NewObjectType(name)}, true
	}
	return nil, false
}

// objectType is the type of a part of an object, named after the path to it. It
// has every field.
type objectType struct{ celType *types.Type }

// HasTrait reports whether values of the type have a trait.
func (t objectType) HasTrait(trait int) bool { return t.celType.HasTrait(trait) }

// TypeName returns the path: "Object.spec".
func (t objectType) TypeName() string { return t.celType.TypeName() }

// Type returns the type as CEL knows it.
func (t objectType) Type() *types.Type { return t.celType }

// FieldNames returns no names: there may be any.
func (objectType) FieldNames() ([]string, bool) { return nil, true }

// Field returns the type of a field, which may hold anything.
func (objectType) Field(name string) (*types.FieldType, bool) {
	return &types.FieldType{
		Type: types.DynType,
		IsSet: func(target any) bool {
			m, _ := target.(map[string]any)
			_, set := m[name]
			return set
		},
		GetFrom: func(target any) (any, error) {
			if m, ok := target.(map[string]any); ok {
				return m[name], nil
			}
			return nil, fmt.Errorf("cannot get field %q", name)
		},
	}, true
}

// Val constructs a value, unless it would be too big.
func (t objectType) Val(fields map[string]ref.Val) ref.Val {
	o := &object{objectType: t, fields: fields, size: 1}
	left := maxElements
	for _, v := range fields {
		count(v, &left)
	}
	if left < 0 {
		return types.WrapErr(fmt.Errorf("%s: %w", t.TypeName(), tooManyElements()))
	}
	o.size += maxElements - left
	return o
}

// object is what Object{...} evaluates to.
type object struct {
	objectType
	fields map[string]ref.Val
	size   int // all elements in it
}

var (
	_ ref.Val       = (*object)(nil)
	_ traits.Zeroer = (*object)(nil)
)

// Type is the type of the object.
func (o *object) Type() ref.Type { return o.celType }

// IsZeroValue reports whether the object has no field.
func (o *object) IsZeroValue() bool { return len(o.fields) == 0 }

// Value returns the object as maps, lists and scalars, or a CEL error.
func (o *object) Value() any {
	out, err := native(o)
	if err != nil {
		return types.WrapErr(err)
	}
	return out
}

// ConvertToNative returns the object as maps, or as a JSON value.
func (o *object) ConvertToNative(want reflect.Type) (any, error) {
	out, err := native(o)
	if err != nil {
		return nil, err
	}
	switch want {
	case reflect.TypeFor[map[string]any]():
		return out, nil
	case reflect.TypeFor[*structpb.Value](), reflect.TypeFor[any]():
		return structpb.NewValue(out)
	}
	return nil, fmt.Errorf("unable to convert %s to %s", o.TypeName(), want)
}

// ConvertToType converts to the object's own type, and to that type itself.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch {
	case t.TypeName() == o.TypeName():
		return o
	case t == types.TypeType:
		return types.NewTypeTypeWithParam(o.celType)
	}
	return types.NewErr("unsupported conversion of %s to %s", o.TypeName(), t.TypeName())
}

// Equal compares type and fields.
func (o *object) Equal(other ref.Val) ref.Val {
	p, ok := other.(*object)
	if !ok || o.TypeName() != p.TypeName() || len(o.fields) != len(p.fields) {
		return types.False
	}
	for name, v := range o.fields {
		w, ok := p.fields[name]
		if !ok || types.Equal(v, w) != types.True {
			return types.False
		}
	}
	return types.True
}

// checkNames reports Objects that are elsewhere than their type says:
// "Object.spec{selector: Object.spec.wrong{}}". Lists and maps on the way have no
// names and do not count. What several elements of a list have in common is reported once.
func (o *object) checkNames() error { return utilerrors.NewAggregate(namesIn(o, o.TypeName())) }

func namesIn(v ref.Val, path string) []error {
	var errs []error
	switch v := v.(type) {
	case *object:
		if v.TypeName() != path {
			errs = append(errs, fmt.Errorf("type mismatch: unexpected type name %q, expected %q, which matches field name path from root Object type", v.TypeName(), path))
		}
		for _, name := range slices.Sorted(maps.Keys(v.fields)) {
			errs = append(errs, namesIn(v.fields[name], path+"."+name)...)
		}
	case traits.Mapper:
		if isNative(v) {
			return nil
		}
		for _, key := range keysOf(v) {
			errs = append(errs, namesIn(v.Get(key), path)...)
		}
	case traits.Lister:
		if isNative(v) {
			return nil
		}
		for it := v.Iterator(); it.HasNext() == types.True; {
			errs = append(errs, namesIn(it.Next(), path)...)
		}
	}
	return errs
}

// native converts a value to what an object of Kubernetes can hold. Data of the input is
// shared.
func native(v ref.Val) (any, error) {
	switch v := v.(type) {
	case *object:
		out := make(map[string]any, len(v.fields))
		for _, name := range slices.Sorted(maps.Keys(v.fields)) {
			err := convertible(v.fields[name])
			if err == nil {
				out[name], err = native(v.fields[name])
			}
			if err != nil {
				return nil, fmt.Errorf("field %q: %w", name, err)
			}
		}
		return out, nil
	case traits.Mapper:
		return nativeMap(v)
	case traits.Lister:
		return nativeList(v)
	case types.Null: // the server's conversion makes a number of it, which fits nothing
		return nil, errors.New("null is nothing that an Object can hold: leave the field out, as ?field: optional.none() does")
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v is no number of JSON", f)
		}
		return v.Value(), nil
	case types.Bool, types.Int, types.String:
		return v.Value(), nil
	case types.Uint:
		if v > types.Uint(1<<63-1) {
			return nil, fmt.Errorf("%d is too big a number", v)
		}
		return int64(v), nil
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("a %s is nothing that an object can hold: convert it to a string", v.Type().TypeName())
}

// convertible returns an error for a field of an Object that an API server of version 1.36, and
// so Kyverno 1.19, does not convert: a map or list that an expression spells out, in which
// there is another one (convertField in pkg/cel/mutation/dynamic of k8s.io/apiserver). Data of
// the input is converted, and so are Objects in lists.
func convertible(field ref.Val) error {
	switch v := field.(type) {
	case *object:
	case traits.Mapper:
		if isNative(v) {
			return nil
		}
		for _, key := range keysOf(v) {
			if spelledOut(v.Get(key)) {
				return fmt.Errorf("key %q: %w", fmt.Sprint(key.Value()), errNested)
			}
		}
	case traits.Lister:
		if isNative(v) {
			return nil
		}
		i := 0
		for it := v.Iterator(); it.HasNext() == types.True; i++ {
			if spelledOut(it.Next()) {
				return fmt.Errorf("element %d: %w", i, errNested)
			}
		}
	}
	return nil
}

var errNested = errors.New("a {...} or [...] within another one is not converted, by API servers or by Kyverno 1.19: " +
	"write Object.x{...} with the path of the field, such as Object.spec{...}, for each map but the innermost")

// spelledOut reports whether a value is a map or list of an expression, other than an Object.
func spelledOut(v ref.Val) bool {
	switch v := v.(type) {
	case *object:
		return false
	case traits.Mapper:
		return !isNative(v)
	case traits.Lister:
		if _, joined := v.(joinedList); !joined {
			return !isNative(v)
		}
		for it := v.Iterator(); it.HasNext() == types.True; {
			if spelledOut(it.Next()) {
				return true
			}
		}
	}
	return false
}

// joinedList is what + makes of two lists, which an API server converts by its elements.
type joinedList struct{ traits.Lister }

func nativeMap(m traits.Mapper) (any, error) {
	if isNative(m) {
		return m.Value(), nil
	}
	out := map[string]any{}
	for _, key := range keysOf(m) {
		name, ok := key.Value().(string)
		if !ok {
			return nil, fmt.Errorf("a map key must be a string, not %s", key.Type().TypeName())
		}
		var err error
		if out[name], err = native(m.Get(key)); err != nil {
			return nil, fmt.Errorf("key %q: %w", name, err)
		}
	}
	return out, nil
}

// keysOf returns the keys of a map, sorted, so that an error always reports the same one
// of several wrong values.
func keysOf(m traits.Mapper) []ref.Val {
	keys := map[string]ref.Val{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		keys[fmt.Sprint(key.Value(), " ", key.Type().TypeName())] = key // 1 and "1" may both be there
	}
	sorted := make([]ref.Val, 0, len(keys))
	for _, text := range slices.Sorted(maps.Keys(keys)) {
		sorted = append(sorted, keys[text])
	}
	return sorted
}

func nativeList(l traits.Lister) (any, error) {
	if isNative(l) {
		return l.Value(), nil
	}
	out := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		item, err := native(it.Next())
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", len(out), err)
		}
		out = append(out, item)
	}
	return out, nil
}
