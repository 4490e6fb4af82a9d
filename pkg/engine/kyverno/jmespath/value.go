package jmespath

import (
	"maps"
	"slices"
	"strconv"
)

// Truthy reports whether a value counts as true: all but null, false and what is empty.
func Truthy(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// sortedKeys is the order in which objects are walked.
func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// scalarText is the text of a scalar where a function takes scalars for texts.
// Kyverno prints numbers with the precision of a float32, which garbles
// integers from 16777217 on; here numbers keep their digits.
func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	if n, ok := integer(value); ok {
		return strconv.FormatInt(n, 10), true
	}
	return "", false
}
