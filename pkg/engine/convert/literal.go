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

// data is a JSON value in CEL.
func data(content any) expr.Expr {
	switch v := content.(type) {
	case map[string]any:
		entries := make([]expr.Entry, 0, len(v))
		for _, name := range nameFirst(v) {
			key, value := entryOf(name, v[name])
			entry := expr.Entry{Key: key, Value: data(value)}
			if x, ok := value.(expression); ok && x.when != nil {
				entry.Value, entry.Optional = only(x.when, x.cel), true
			}
			entries = append(entries, entry)
		}
		return expr.Map(entries...)
	case []any:
		items := make([]expr.Expr, len(v))
		for i := range v {
			items[i] = data(v[i])
		}
		return expr.List(items...)
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
