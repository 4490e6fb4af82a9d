package cel

import (
	"iter"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// maxElements bounds the values that one expression builds. CEL's cost does not: joining lists is nearly
// free, so a chain of variables that each join the previous one with itself exceeds any memory.
const maxElements = 100_000

// subtractSize subtracts the elements of a value from left, and stops below zero. Input data counts only by
// its length, since it cannot grow.
func subtractSize(v ref.Val, left *int) {
	*left--
	if isNative(v) {
		*left -= int(v.(traits.Sizer).Size().(types.Int))
	}
	for element := range elementsOf(v) {
		if *left < 0 {
			return
		}
		subtractSize(element, left)
	}
}

// elementsOf returns the values in a value that an expression has built; none of input data.
func elementsOf(v ref.Val) iter.Seq[ref.Val] {
	return func(yield func(ref.Val) bool) {
		if optional, ok := v.(*types.Optional); ok && optional.HasValue() {
			yield(optional.GetValue())
		}
		if operation, ok := v.(*mutation.JSONPatchVal); ok && operation.Val != nil {
			yield(operation.Val)
		}
		container, ok := v.(traits.Iterable)
		named, isMap := v.(traits.Mapper)
		// maps of other types are a policy's variables, which this would evaluate
		if !ok || isNative(v) || isMap && v.Type() != types.MapType {
			return
		}
		for it := container.Iterator(); it.HasNext() == types.True; {
			element := it.Next()
			if isMap {
				element = named.Get(element)
			}
			if !yield(element) {
				return
			}
		}
	}
}

// isNative reports whether a container is input data, not built by an expression. Only the library's own
// containers may be asked for their value: joined ones would join their parts recursively.
func isNative(v ref.Val) bool {
	switch reflect.TypeOf(v) {
	case reflect.TypeOf(types.DefaultTypeAdapter.NativeToValue([]any{})):
		_, native := v.Value().([]any)
		return native
	case reflect.TypeOf(types.DefaultTypeAdapter.NativeToValue(map[string]any{})):
		_, native := v.Value().(map[string]any)
		return native
	}
	return false
}
