package cel

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// maxElements bounds what one expression may build. CEL's cost does not bound it:
// joining two lists costs next to nothing, so that a chain of variables which
// each join the one before with itself builds a list that no memory holds.
const maxElements = 100_000

// subtractSize subtracts the elements of a value from what is left, and stops when nothing is.
// Data of the input counts only by its length: it is no bigger than it was.
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
		// of another type are a policy's variables, which it would evaluate
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

// counted reports whether a container need not be gone through: it is data of the input, or
// too big for what is left.
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

// isNative reports whether a container is data of the input, rather than made by an
// expression. Only the library's own containers may be asked for their value: those
// that join others would join all parts of their parts.
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
