package strategicmerge

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// kind is what a value is to a merge.
type kind byte

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

// asText returns the text of a scalar, and any other value itself.
func asText(v any) any {
	if _, isText := v.(string); isText {
		return v
	}
	if s, ok := text(v); ok {
		return s
	}
	return v
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(e any) bool { return diff.Same(e, v) })
}
