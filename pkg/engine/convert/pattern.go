package convert

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

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
		return matchesText(at, v)
	}
	return matchesScalar(at, want)
}

// matchesScalar compares with a boolean or a number, which anchors do as text.
func matchesScalar(at place, want any) (string, error) {
	switch at.scalar() {
	case schema.Boolean:
		if b, ok := want.(bool); ok {
			return at.or(fmt.Sprint(!b)) + fmt.Sprintf(" == %t", b), nil
		}
	case schema.Numeric:
		if _, ok := want.(bool); !ok {
			return present(at, at.plain()+" == "+literal(want)), nil
		}
	case schema.String:
		return at.or(`""`) + " == " + quote(plainText(want)), nil
	}
	return present(at, "string("+at.plain()+") == "+quote(plainText(want))), nil
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

var amount = regexp.MustCompile(`^[+-]?[0-9.]+`)

// matchesText is a condition for a text of the little language of patterns.
func matchesText(at place, want string) (string, error) {
	text := at.or(`""`)
	plain := at.plain()
	isText := at.scalar() == schema.String || at.scalar() == "" && at.parentTexts()
	if !isText && at.known() && at.scalar() != "" {
		return matchesOther(at, want)
	}
	if !isText {
		text, plain = "string("+at.or(`""`)+")", "string("+at.plain()+")"
	}
	var alternatives, values []string
	for alternative := range strings.SplitSeq(want, "|") {
		var terms []string
		for term := range strings.SplitSeq(strings.Trim(alternative, " "), "&") {
			c, value, err := matchesTerm(at, strings.Trim(term, " "), text, plain)
			if err != nil {
				return "", err
			}
			terms = append(terms, c)
			if value != "" {
				values = append(values, value)
			}
		}
		alternatives = append(alternatives, condition(terms))
	}
	if len(alternatives) > 1 && len(values) == len(alternatives) {
		return text + " in [" + strings.Join(values, ", ") + "]", nil
	}
	return strings.Join(alternatives, " || "), nil
}

// parentTexts reports whether the place is a value of labels or annotations.
func (p place) parentTexts() bool { return p.parentIsLabels() }

// matchesTerm is the condition of one term; value is the literal that it is equal to, if that is all it asks.
func matchesTerm(at place, term, text, plain string) (c, value string, err error) {
	operator := ""
	for _, op := range []string{">=", "<=", ">", "<", "!"} {
		if len(term) > 1 && strings.HasPrefix(term, op) {
			operator, term = op, term[len(op):]
			break
		}
	}
	if amount.MatchString(term) {
		if _, err := resource.ParseQuantity(term); err == nil || operator != "" && operator != "!" {
			return matchesAmount(at, operator, term, plain)
		}
	}
	switch operator {
	case "":
		if term == "" { // which a field that is absent does not match
			return present(at, plain+` == ""`), "", nil
		}
		c = wildcard(text, term)
		if !selector.HasWildcard(term) {
			return c, quote(term), nil
		}
		if term == "*" {
			return at.has(), "", nil
		}
		if wildcardMatchesEmpty(term) {
			c = present(at, wildcard(plain, term))
		}
		return c, "", nil
	case "!":
		return present(at, negate(wildcard(plain, term))), "", nil
	}
	return "", "", refuse(at, "the comparison %s%s", operator, term)
}

func wildcardMatchesEmpty(p string) bool { return strings.Trim(p, "*") == "" }

func matchesAmount(at place, operator, term, plain string) (string, string, error) {
	if operator == "" || operator == "!" {
		// Equal as amounts, or as text.
		return "", "", refuse(at, "the amount %s%s, which is equal to others that are written in another way", operator, term)
	}
	method := map[string]string{">": "> 0", ">=": ">= 0", "<": "< 0", "<=": "<= 0"}[operator]
	x := plain
	if at.scalar() != schema.String {
		x = "string(" + at.plain() + ")"
	}
	return present(at, fmt.Sprintf("isQuantity(%s) && quantity(%s).compareTo(quantity(%s)) %s", x, x, quote(term), method)), "", nil
}

// matchesOther compares a number or boolean with a text.
func matchesOther(at place, want string) (string, error) {
	switch want {
	case "*":
		return at.has(), nil
	case "true", "false":
		if at.scalar() == schema.Boolean {
			return matchesScalar(at, want == "true")
		}
	}
	for _, op := range []string{">=", "<=", ">", "<", "!"} {
		if number, ok := strings.CutPrefix(want, op); ok && wholeNumber.MatchString(number) && at.scalar() == schema.Numeric {
			if op == "!" {
				op = "!="
			}
			return present(at, fmt.Sprintf("%s %s %s", at.plain(), op, number)), nil
		}
	}
	if wholeNumber.MatchString(want) && at.scalar() == schema.Numeric {
		return present(at, at.plain()+" == "+want), nil
	}
	if b, ok := strings.CutPrefix(want, "!"); ok && at.scalar() == schema.Boolean && (b == "true" || b == "false") {
		return present(at, at.plain()+" != "+b), nil
	}
	return "", refuse(at, "the pattern %s of a value that is no text", want)
}

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
