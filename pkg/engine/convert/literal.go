package convert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// plainText is a scalar as a string.
func plainText(v any) string {
	if text, ok := pattern.Text(v); ok {
		return text
	}
	return fmt.Sprint(v)
}

// literal is a scalar in CEL.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return quote(v)
	case nil:
		return "null"
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	case expression:
		return v.cel
	}
	return fmt.Sprint(v)
}

// data is a JSON value in CEL. A literal of a map or list has values of one type, so that those of several
// types are marked as dynamic.
func data(content any) string {
	switch v := content.(type) {
	case map[string]any:
		entries := make([]string, 0, len(v))
		mixed := isMixed(slices.Collect(maps.Values(v)))
		for _, key := range nameFirst(v) {
			name := quote(key)
			if expr, computed := strings.CutPrefix(key, computedKey); computed {
				name = expr
			}
			entries = append(entries, name+": "+dynamic(v[key], mixed))
		}
		return "{" + strings.Join(entries, ", ") + "}"
	case []any:
		elements := make([]string, len(v))
		mixed := isMixed(v)
		for i := range v {
			elements[i] = dynamic(v[i], mixed)
		}
		return "[" + strings.Join(elements, ", ") + "]"
	}
	return literal(content)
}

// nameFirst are the keys of a map in the order in which people write them.
func nameFirst(m map[string]any) []string {
	keys := sortedKeys(m)
	slices.SortStableFunc(keys, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == "name":
			return -1
		case b == "name":
			return 1
		}
		return 0
	})
	return keys
}

func dynamic(v any, mixed bool) string {
	if mixed {
		return "dyn(" + data(v) + ")"
	}
	return data(v)
}

func isMixed(values []any) bool {
	types := map[string]bool{}
	for _, v := range values {
		types[typeName(v)] = true
	}
	return len(types) > 1
}

// typeName tells types apart that cannot be in one literal.
func typeName(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case int64, int:
		return "int"
	case float64:
		return "double"
	case expression:
		if v.text {
			return "string"
		}
		return "dyn"
	case map[string]any:
		inner := slices.Collect(maps.Values(v))
		if len(inner) == 0 {
			return "{}"
		}
		if isMixed(inner) {
			return "{dyn}"
		}
		return "{" + typeName(inner[0]) + "}"
	case []any:
		if len(v) == 0 {
			return "[]"
		}
		if isMixed(v) {
			return "[dyn]"
		}
		return "[" + typeName(v[0]) + "]"
	}
	return "null"
}
