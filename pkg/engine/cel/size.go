package cel

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// maxElements bounds the values that one expression builds. CEL's cost does not: joining lists is nearly
// free, so a chain of variables that each join the previous one with itself exceeds any memory.
const maxElements = 100_000

// subtractSize subtracts the elements of a value from left, and stops at zero. Input data counts only by its
// length, since it cannot grow.
func subtractSize(v ref.Val, left *int) {
	if *left--; *left < 0 {
		return
	}
	switch v := v.(type) {
	case *types.Optional:
		if v.HasValue() {
			subtractSize(v.GetValue(), left)
		}
	case *mutation.JSONPatchVal:
		if v.Val != nil {
			subtractSize(v.Val, left)
		}
	case traits.Mapper:
		// maps of other types are a policy's variables, which this would evaluate
		if v.Type() == types.MapType && !counted(v, left) {
			for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
				subtractSize(v.Get(it.Next()), left)
			}
		}
	case traits.Lister:
		if !counted(v, left) {
			for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
				subtractSize(it.Next(), left)
			}
		}
	}
}

// counted reports whether a container need not be traversed: it is input data, or exceeds left.
func counted(c traits.Sizer, left *int) bool {
	size, ok := c.Size().(types.Int)
	switch {
	case !ok || int64(size) > int64(*left):
		*left = -1
		return true
	case isNative(c):
		*left -= int(size)
		return true
	}
	return false
}

// isNative reports whether a container is input data, not built by an expression. Only the library's own
// containers may be asked for their value: joined ones would join their parts recursively.
func isNative(v any) bool {
	switch reflect.TypeOf(v) {
	case reflect.TypeOf(types.DefaultTypeAdapter.NativeToValue([]any{})):
		_, native := v.(ref.Val).Value().([]any)
		return native
	case reflect.TypeOf(types.DefaultTypeAdapter.NativeToValue(map[string]any{})):
		_, native := v.(ref.Val).Value().(map[string]any)
		return native
	}
	return false
}
