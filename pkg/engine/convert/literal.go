package convert

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
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

// keyed is a value whose key in a map is computed.
type keyed struct {
	key   expr.Expr
	value any
}

// computedKey marks the key of a value that is keyed.
const computedKey = "\x00"

// data is a JSON value in CEL. A literal of a map or list has values of one type, so that those of several
// types are marked as dynamic.
func data(content any) expr.Expr {
	switch v := content.(type) {
	case map[string]any:
		entries := make([]expr.Entry, 0, len(v))
		mixed := isMixed(slices.Collect(maps.Values(v)))
		for _, name := range nameFirst(v) {
			key, value := entryOf(name, v[name])
			entries = append(entries, expr.Entry{Key: key, Value: dynamic(value, mixed)})
		}
		return expr.Object("", entries...)
	case []any:
		elements := make([]expr.Expr, len(v))
		mixed := isMixed(v)
		for i := range v {
			elements[i] = dynamic(v[i], mixed)
		}
		return expr.Elements(elements...)
	case expression:
		return v.cel
	}
	return expr.Value(content)
}

// entryOf is an entry of a map, whose key may be computed.
func entryOf(name string, value any) (expr.Expr, any) {
	if of, computed := value.(keyed); computed {
		return of.key, of.value
	}
	return expr.String(name), value
}

// nameFirst are the keys of a map in the order in which people write them.
func nameFirst(m map[string]any) []string {
	keys := sortedKeys(m)
	if i := slices.Index(keys, "name"); i > 0 {
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, "name")
	}
	return keys
}

func dynamic(v any, mixed bool) expr.Expr {
	if mixed {
		return expr.Call("dyn", data(v))
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
	case keyed:
		return typeName(v.value)
	case expression:
		if v.isText() {
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
