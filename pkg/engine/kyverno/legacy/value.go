package legacy

import (
	"maps"
	"reflect"
	"slices"
)

// mapOf is a value as a map; nil for any other.
func mapOf(v any) map[string]any {
	switch v := v.(type) {
	case entry:
		return v
	case map[string]any:
		if v == nil {
			return map[string]any{}
		}
		return v
	}
	return nil
}

func isScalar(v any) bool {
	switch v.(type) {
	case nil, map[string]any, []any, entry:
		return false
	}
	return true
}

// hasScalars tells whether a map says anything of its own, beside maps, lists and
// what is only added where it lacks.
func hasScalars(m map[string]any) bool {
	for key, value := range m {
		if isScalar(value) && !isAdd(key) {
			return true
		}
	}
	return false
}

// holdsMaps tells whether a list is one of maps; an empty one may be.
func holdsMaps(list []any) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(v any) bool { return mapOf(v) != nil })
}

// same tells whether two values are one, without a walk.
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
	return isScalar(b) && a == b
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
