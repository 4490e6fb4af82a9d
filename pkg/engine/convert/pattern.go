package convert

import (
	"regexp"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// matches is a condition: the value at a place is there and matches a pattern of an anchor.
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
			x := atPlace(at, func() expression { return m.scope.text(v) })
			return expr.And(at.has, expr.Equal(at.plain, x.cel)) // a wildcard in the value is not taken for one
		}
	}
	return atPlace(at, func() expr.Expr { return m.scope.Pattern(at.value(), want) })
}

func (m *merge) matchesMap(at place, want map[string]any) expr.Expr {
	if len(want) == 0 {
		return expr.And(at.has)
	}
	var all []expr.Expr
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

// matchesList asks every element, of which there may be none.
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

// matchesSome asks the elements that meet the conditions of a pattern, of which there has to be one.
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
	return expr.And(some, expr.Macro(list.elements(), "all", element.root, expr.Or(expr.Not(which), m.matchesMap(element, rest))))
}

var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)
