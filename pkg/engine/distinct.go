package engine

import "slices"

// Distinct returns the elements of a list in their order, each once. It writes to the list.
func Distinct[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	return slices.DeleteFunc(list, func(one T) bool {
		known := seen[one]
		seen[one] = true
		return known
	})
}
