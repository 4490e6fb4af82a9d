package legacy

import "slices"

// holdsMaps reports whether a list is one of maps; an empty one may be.
func holdsMaps(list []any) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(v any) bool { return kindOf(v) == isMap })
}
