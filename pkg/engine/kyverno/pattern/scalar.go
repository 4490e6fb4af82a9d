package pattern

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
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
	return value == any(pattern) || slices.ContainsFunc(strings.Split(pattern, "|"), func(alternative string) bool {
		return !slices.ContainsFunc(strings.Split(alternative, "&"), func(term string) bool { return !holdsTerm(strings.Trim(term, " "), value) })
	})
}

// operator is what stands before a text, and the orders of value and text that it holds for.
type operator struct {
	sign   string
	orders []int
}

//nolint:gochecknoglobals // an immutable table
var operators = []operator{{">=", []int{0, 1}}, {"<=", []int{-1, 0}}, {">", []int{1}}, {"<", []int{-1}}, {"!", []int{-1, 1}}}

// holdsTerm reads a range, or a text behind an operator. A single character is always
// text, so that "!" and ">" can be matched.
func holdsTerm(term string, value any) bool {
	low, high, outside, isRange := ParseRange(term)
	switch {
	case outside:
		return holdsTerm("<"+low, value) || holdsTerm(">"+high, value)
	case isRange:
		return holdsTerm(">="+low, value) && holdsTerm("<="+high, value)
	}
	for _, op := range operators {
		if text, found := strings.CutPrefix(term, op.sign); found && len(term) > 1 {
			return op.compares(value, strings.TrimSpace(text))
		}
	}
	return operator{"", []int{0}}.compares(value, strings.TrimSpace(term))
}

// compares tries durations, then quantities, then text; the first that agrees
// decides, so that `!5` holds for "5.0" as text although the amounts agree.
func (op operator) compares(value any, text string) bool {
	if amount, ok := numberText(value); ok && (op.comparesDurations(amount, text) || op.comparesQuantities(amount, text)) {
		return true
	}
	shown, ok := scalarText(value)
	return ok && (op.sign == "" || op.sign == "!") && selector.MatchWildcard(text, shown) == (op.sign == "")
}

func (op operator) comparesDurations(amount, text string) bool {
	want, ok := jmespath.ParseDuration(text)
	got, also := jmespath.ParseDuration(amount)
	return ok && also && slices.Contains(op.orders, cmp.Compare(got, want))
}

func (op operator) comparesQuantities(amount, text string) bool {
	want, err := jmespath.ParseQuantity(text)
	if err != nil {
		return false
	}
	got, err := jmespath.ParseQuantity(amount)
	return err == nil && slices.Contains(op.orders, got.Cmp(want))
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
