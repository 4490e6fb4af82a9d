package convert

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// matches is the condition that a value exists and matches an anchor's pattern.
func (m *merge) matches(at place, want any) expr.Expr {
	switch v := want.(type) {
	case map[string]any:
		return m.matchesMap(at, v)
	case []any:
		return m.matchesList(at, v)
	case nil:
		panic(refuse(at, "a pattern that is null"))
	case string:
		if strings.Contains(v, "{{") {
			x := atPlace(at, func() expression { return m.scope.templateText(v) })
			return expr.And(at.has, expr.Equal(at.plain, x.cel)) // a wildcard in the value has no meaning
		}
	}
	return atPlace(at, func() expr.Expr { return m.scope.Pattern(at.value(), want) })
}

func (m *merge) matchesMap(at place, want map[string]any) expr.Expr {
	if len(want) == 0 {
		return expr.And(at.has)
	}
	var all []expr.Expr
	m.scope.within(at, "map")
	for _, key := range sortedKeys(want) {
		anchor, name := pattern.ParseKey(key)
		below := at.field(name, false)
		switch {
		case selector.HasWildcard(name):
			panic(refuse(at, "a wildcard in the key %s", name))
		case anchor == pattern.Existence || anchor == pattern.Add:
			panic(refuse(below, "the anchor %s in a pattern", anchor))
		case anchor == pattern.Negation:
			all = append(all, expr.Not(below.has))
			continue
		}
		c := m.matches(below, want[key])
		if anchor == pattern.Equality {
			c = expr.Or(expr.Not(below.has), c)
		}
		all = append(all, c)
	}
	return expr.And(all...)
}

// matchesList applies a pattern to every element of a possibly empty list.
func (m *merge) matchesList(at place, want []any) expr.Expr {
	if len(want) == 0 {
		panic(refuse(at, "a pattern that is an empty list matches nothing"))
	}
	variable, index := m.variables(at)
	defer func() { delete(m.used, variable) }()
	element := at.element(variable, indexText(index))
	if first, isMap := want[0].(map[string]any); isMap && hasAnchor(first) {
		return m.matchesSome(element, at, first)
	}
	return expr.And(at.has, expr.Macro(at.plain, "all", variable, m.matches(element, want[0])))
}

// matchesSome requires an element that meets the conditions, and applies the pattern to all of these.
func (m *merge) matchesSome(element, list place, want map[string]any) expr.Expr {
	conditions, rest := map[string]any{}, map[string]any{}
	for key, v := range want {
		if anchor, _ := pattern.ParseKey(key); anchor == pattern.Condition || anchor == pattern.Global {
			conditions[key] = v
		} else {
			rest[key] = v
		}
	}
	if hasAnchor(rest) || len(conditions) == 0 {
		panic(refuse(list, "anchors in a list of a pattern"))
	}
	which := m.matchesMap(element, conditions)
	some := expr.Macro(list.elements(), "exists", element.root, which)
	if len(rest) == 0 {
		return some
	}
	return expr.And(some,
		expr.Macro(list.elements(), "all", element.root, expr.Or(expr.Not(which), m.matchesMap(element, rest))))
}

var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// plainText formats a scalar as a string.
func plainText(v any) string {
	if text, ok := pattern.Text(v); ok {
		return text
	}
	return fmt.Sprint(v)
}

// keyed is a value with a computed map key.
type keyed struct {
	key   expr.Expr
	value any
}

// computedKey marks the key of a keyed value.
const computedKey = "\x00"

// data is a JSON value as a CEL expression.
func data(content any) expr.Expr {
	switch v := content.(type) {
	case map[string]any:
		entries := make([]expr.Entry, 0, len(v))
		for _, name := range nameFirst(v) {
			key, value := entryOf(name, v[name])
			entry := expr.Entry{Key: key, Value: data(value)}
			if x, ok := value.(expression); ok && x.when != nil {
				entry.Value, entry.Optional = only(x.when, expr.Call("dyn", x.cel)), true
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

// entryOf is a map entry whose key may be computed.
func entryOf(name string, value any) (expr.Expr, any) {
	if of, computed := value.(keyed); computed {
		return of.key, of.value
	}
	return expr.String(name), value
}

// nameFirst sorts the keys of a map in their customary order.
func nameFirst(m map[string]any) []string {
	keys := sortedKeys(m)
	if i := slices.Index(keys, "name"); i > 0 {
		keys = slices.Insert(slices.Delete(keys, i, i+1), 0, "name")
	}
	return keys
}
