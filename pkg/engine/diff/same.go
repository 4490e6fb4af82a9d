package diff

import (
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Shared reports whether two maps, or two lists that are not empty, are one and the
// same in memory.
func Shared(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		return engine.Identical(a, b)
	case []any:
		return len(x) > 0 && engine.Identical(a, b)
	}
	return false
}

// Same reports whether two values have the same content. Shared parts are not
// compared, and numbers compare by value, whatever their type. Unlike Equal it knows
// no schema.
func Same(a, b any) bool {
	if Shared(a, b) {
		return true
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if other, ok := y[k]; !ok || !Same(v, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Same)
	}
	return scalarsEqual(a, b, Type{})
}

// With returns a copy of a map with a field set.
func With(m map[string]any, name string, value any) map[string]any {
	if m = maps.Clone(m); m == nil {
		m = map[string]any{}
	}
	m[name] = value
	return m
}

// Without returns a copy of a map without a field.
func Without(m map[string]any, name string) map[string]any {
	m = maps.Clone(m)
	delete(m, name)
	return m
}
