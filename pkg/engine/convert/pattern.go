package convert

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// matches is a condition: the value at a place is there and matches a pattern of an anchor.
func (m *merge) matches(at place, want any) (string, error) {
	switch v := want.(type) {
	case map[string]any:
		return m.matchesMap(at, v)
	case []any:
		return m.matchesList(at, v)
	case nil:
		return "", refuse(at, "a pattern that is null")
	case string:
		if strings.Contains(v, "{{") {
			x, err := m.scope.text(v)
			if err != nil {
				return "", refuse(at, "%v", err)
			}
			return present(at, at.plain()+" == "+x.cel), nil // a wildcard in the value is not taken for one
		}
	}
	return m.matchesScalar(at, want)
}

// matchesScalar compares a value, or each element of a list.
func (m *merge) matchesScalar(at place, want any) (string, error) {
	holds, err := m.scope.Pattern(at.value(), want)
	if err != nil {
		return "", refuse(at, "%v", err)
	}
	return flat(holds), nil
}

func present(at place, c string) string { return condition([]string{at.has(), c}) }

func (m *merge) matchesMap(at place, want map[string]any) (string, error) {
	all := []string{}
	if len(want) == 0 {
		return at.has(), nil
	}
	for _, key := range sortedKeys(want) {
		anchor, name := pattern.ParseKey(key)
		if selector.HasWildcard(name) {
			return "", refuse(at, "a wildcard in the key %s", name)
		}
		below := at.field(name, false)
		switch anchor {
		case pattern.Negation:
			all = append(all, negate(below.has()))
			continue
		case pattern.Equality:
			c, err := m.matches(below, want[key])
			if err != nil {
				return "", err
			}
			all = append(all, negate(below.has())+" || "+c)
			continue
		case pattern.Existence, pattern.Add:
			return "", refuse(below, "the anchor %s in a pattern", anchor)
		}
		c, err := m.matches(below, want[key])
		if err != nil {
			return "", err
		}
		all = append(all, c)
	}
	return condition(all), nil
}

// matchesList asks every element, of which there may be none.
func (m *merge) matchesList(at place, want []any) (string, error) {
	if len(want) == 0 {
		return "", refuse(at, "a pattern that is an empty list matches nothing")
	}
	variable, index := m.variables(at)
	defer func() { delete(m.used, variable) }()
	element := at.element(variable, "string("+index+")")
	if first, isMap := want[0].(map[string]any); isMap && anchors(first, false) {
		return m.matchesSome(element, at, first)
	}
	c, err := m.matches(element, want[0])
	if err != nil {
		return "", err
	}
	return present(at, fmt.Sprintf("%s.all(%s, %s)", at.plain(), variable, c)), nil
}

// matchesSome asks the elements that meet the conditions of a pattern, of which there has to be one.
func (m *merge) matchesSome(element, list place, want map[string]any) (string, error) {
	conditions, rest := map[string]any{}, map[string]any{}
	for key, v := range want {
		if anchor, _ := pattern.ParseKey(key); anchor == pattern.Condition || anchor == pattern.Global {
			conditions[key] = v
		} else {
			rest[key] = v
		}
	}
	if anchors(rest, false) || len(conditions) == 0 {
		return "", refuse(list, "anchors in a list of a pattern")
	}
	which, err := m.matchesMap(element, conditions)
	if err != nil {
		return "", err
	}
	all := []string{fmt.Sprintf("%s.exists(%s, %s)", list.or("[]"), element.root, which)}
	if len(rest) > 0 {
		other, err := m.matchesMap(element, rest)
		if err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf("%s.all(%s, !(%s) || %s)", list.or("[]"), element.root, which, other))
	}
	return condition(all), nil
}

func wildcardMatchesEmpty(p string) bool { return strings.Trim(p, "*") == "" }

var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)

// wildcard is a condition: a text matches a pattern with * and ?.
func wildcard(text, p string) string {
	body := strings.Trim(p, "*")
	left, right := strings.HasPrefix(p, "*"), strings.HasSuffix(p, "*")
	simple := !strings.ContainsAny(body, "*?") && strings.Trim(p, "*") == body
	switch {
	case p == "*":
		return "true"
	case p == "?*" || p == "*?":
		return text + ` != ""`
	case !selector.HasWildcard(p):
		return text + " == " + quote(p)
	case simple && left && right:
		return text + ".contains(" + quote(body) + ")"
	case simple && left:
		return text + ".endsWith(" + quote(body) + ")"
	case simple && right:
		return text + ".startsWith(" + quote(body) + ")"
	}
	return text + ".matches(" + quote("(?s)^"+expressionOf(p)+"$") + ")"
}

// expressionOf is a regular expression for a pattern with wildcards.
func expressionOf(p string) string {
	var b strings.Builder
	for _, r := range p {
		switch r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return b.String()
}
