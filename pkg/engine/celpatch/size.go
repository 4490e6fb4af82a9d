package celpatch

import (
	"fmt"
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

// checkSize refuses a value that is too big to be looked at.
func checkSize(x *Expression, v ref.Val) error {
	left := maxElements
	if count(v, &left); left < 0 {
		return &LimitError{Expression: x.text, Limit: fmt.Sprintf("%d elements in one value", maxElements)}
	}
	return nil
}

// count takes the elements of a value off what is left, and stops when nothing
// is. Data of the input counts by its size alone: it is no bigger than it was.
func count(v ref.Val, left *int) {
	*left--
	if *left < 0 {
		return
	}
	switch v := v.(type) {
	case *object:
		*left -= v.size
	case *types.Optional:
		if v.HasValue() {
			count(v.GetValue(), left)
		}
	case *mutation.JSONPatchVal:
		if v.Val != nil {
			count(v.Val, left)
		}
	case traits.Mapper:
		countMap(v, left)
	case traits.Lister:
		countList(v, left)
	}
}

func countList(v traits.Lister, left *int) {
	size, ok := v.Size().(types.Int)
	if !ok || int64(size) > int64(*left) {
		*left = -1
		return
	}
	if isNative(v) {
		*left -= int(size)
		return
	}
	for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
		count(it.Next(), left)
	}
}

func countMap(v traits.Mapper, left *int) {
	size, ok := v.Size().(types.Int)
	if !ok || int64(size) > int64(*left) {
		*left = -1
		return
	}
	if isNative(v) {
		*left -= int(size)
		return
	}
	for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
		count(v.Get(it.Next()), left)
	}
}

// isNative tells whether a container is data of the input and not of literals.
// Only the library's own containers may be asked for what they hold: those that
// join others would join all parts of their parts.
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
