package legacy

import (
	"reflect"
	"slices"
)

// holdsMaps reports whether a list is one of maps; an empty one may be.
func holdsMaps(list []any) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(v any) bool { return kindOf(v) == isMap })
}

// same reports whether two values are one, without a walk.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	case nil:
		return b == nil
	}
	return kindOf(b) == isScalar && a == b
}
