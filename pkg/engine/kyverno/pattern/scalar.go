package pattern

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// holds reports whether a value that is no list matches a pattern that is neither a map nor a list.
func holds(pattern, value any) bool {
	switch p := pattern.(type) {
	case nil:
		return isZero(value)
	case bool:
		return value == any(p)
	case int64, int, float64:
		if text, isText := value.(string); isText {
			value = parseNumber(text, p)
		}
		return jmespath.Equal(nil, p, value)
	case string:
		return holdsText(p, value)
	}
	return false // of a type that JSON does not have
}

// isZero is what a null pattern asks for.
func isZero(value any) bool {
	switch value {
	case nil, false, int64(0), 0, 0.0, "":
		return true
	}
	return false
}

// parseNumber reads a number like another one, a float or not; a string that is none is null.
func parseNumber(text string, like any) any {
	if _, isFloat := like.(float64); isFloat {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	} else if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return nil
}

// holdsText reads the little language of text patterns: `|` binds weaker than `&`.
func holdsText(pattern string, value any) bool {
	if value == any(pattern) {
		return true
	}
	for alternative := range strings.SplitSeq(pattern, "|") {
		if holdsAll(strings.Trim(alternative, " "), value) {
			return true
		}
	}
	return false
}

func holdsAll(terms string, value any) bool {
	for term := range strings.SplitSeq(terms, "&") {
		if !holdsTerm(strings.Trim(term, " "), value) {
			return false
		}
	}
	return true
}

// holdsTerm reads a range, or a text behind an operator.
func holdsTerm(term string, value any) bool {
	op := operatorOf(term)
	low, high, outside, isRange := ParseRange(term)
	switch {
	case op != equal || !isRange:
		return op.compares(value, strings.TrimSpace(term[len(op):]))
	case outside:
		return less.compares(value, low) || greater.compares(value, high)
	default:
		return greaterOrEqual.compares(value, low) && lessOrEqual.compares(value, high)
	}
}

type operator string

const (
	equal          operator = ""
	notEqual       operator = "!"
	greater        operator = ">"
	greaterOrEqual operator = ">="
	less           operator = "<"
	lessOrEqual    operator = "<="
)

// operatorOf reads the operator before a text. A single character is always
// text, so that "!" and ">" can be matched.
func operatorOf(term string) operator {
	if len(term) < 2 {
		return equal
	}
	for _, op := range [...]operator{greaterOrEqual, lessOrEqual, greater, less, notEqual} {
		if strings.HasPrefix(term, string(op)) {
			return op
		}
	}
	return equal
}

// compares tries durations, then quantities, then text; the first that agrees
// decides, so that `!5` holds for "5.0" as text although the amounts agree.
func (op operator) compares(value any, text string) bool {
	amount, ok := numberText(value)
	return ok && (op.comparesDurations(amount, text) || op.comparesQuantities(amount, text)) || op.comparesTexts(value, text)
}

func (op operator) comparesDurations(amount, text string) bool {
	want, ok := jmespath.ParseDuration(text)
	got, also := jmespath.ParseDuration(amount)
	return ok && also && op.holds(cmp.Compare(got, want))
}

func (op operator) comparesQuantities(amount, text string) bool {
	want, err := jmespath.ParseQuantity(text)
	if err != nil {
		return false
	}
	got, err := jmespath.ParseQuantity(amount)
	return err == nil && op.holds(got.Cmp(want))
}

// comparesTexts knows no order: only `=` and `!` can hold.
func (op operator) comparesTexts(value any, pattern string) bool {
	if op != equal && op != notEqual {
		return false
	}
	text, ok := scalarText(value)
	return ok && selector.MatchWildcard(pattern, text) == (op == equal)
}

func (op operator) holds(order int) bool {
	switch op {
	case equal:
		return order == 0
	case notEqual:
		return order != 0
	case greater:
		return order > 0
	case greaterOrEqual:
		return order >= 0
	case less:
		return order < 0
	default:
		return order <= 0
	}
}

// numberText is the text that is read as an amount; null counts as zero.
func numberText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "0", true
	case bool:
		return "", false
	case float64:
		return strconv.FormatFloat(v, 'f', 6, 64), true
	}
	return Text(value)
}

// scalarText is the text that wildcards see. Floats look like 1.5E+00 there, as
// they do in Kyverno.
func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", false
	case float64:
		return strconv.FormatFloat(v, 'E', -1, 64), true
	}
	return Text(value)
}

// Text is a scalar as YAML shows it without quotes, and false for a map or a list.
func Text(value any) (string, bool) {
	switch v := value.(type) {
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
		text, err := json.Marshal(v)
		return string(text), err == nil
	default:
		return "", false
	}
}

// rangeOfAmounts is `a-b` or `a!-b`.
var rangeOfAmounts = regexp.MustCompile(`^([-+]?\d+(?:\.\d+)?[A-Za-z]*)(!?)-([-+]?\d+(?:\.\d+)?[A-Za-z]*)$`)

// ParseRange reads `a-b` (outside is false) and `a!-b` (outside is true), where
// a and b are numbers that a unit may follow. Blanks are not allowed.
func ParseRange(term string) (low, high string, outside, ok bool) {
	if !strings.Contains(term, "-") {
		return "", "", false, false
	}
	parts := rangeOfAmounts.FindStringSubmatch(term)
	if parts == nil {
		return "", "", false, false
	}
	return parts[1], parts[3], parts[2] != "", true
}
