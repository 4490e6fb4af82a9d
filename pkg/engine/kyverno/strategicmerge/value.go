package strategicmerge

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// kind is what a value is to a merge.
type kind int

const (
	isNull kind = iota
	isScalar
	isMap
	isList
)

// String is how messages call it.
func (k kind) String() string {
	return [...]string{"null", "value", "map", "list"}[k]
}

func kindOf(v any) kind {
	switch v.(type) {
	case nil:
		return isNull
	case map[string]any:
		return isMap
	case []any:
		return isList
	default:
		return isScalar
	}
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

func asMaps(values []any) []map[string]any {
	out := make([]map[string]any, len(values))
	for i, v := range values {
		out[i] = v.(map[string]any)
	}
	return out
}

// text is a scalar as YAML would show it without quotes.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "null", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		out, err := json.Marshal(v)
		return string(out), err == nil
	default:
		return "", false
	}
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(e any) bool { return diff.Same(e, v) })
}

// sortedKeys is the order in which a map is gone through.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
