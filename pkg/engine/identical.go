package engine

import (
	"reflect"
	"unsafe"
)

// Identical reports whether two values of JSON are one and the same in memory, as opposed to
// equal. Scalars and empty lists are if they are equal. It walks into nothing.
func Identical(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && identity(x) == identity(y)
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return a == b
}

func identity(m map[string]any) unsafe.Pointer { return reflect.ValueOf(m).UnsafePointer() }
