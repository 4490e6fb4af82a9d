package pattern

import (
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// matchScalar matches a value that is not to be walked into.
func matchScalar(pattern, value any) bool {
	switch p := pattern.(type) {
	case nil:
		return isZero(value)
	case bool:
		v, ok := value.(bool)
		return ok && v == p
	case int64:
		return matchInteger(p, value)
	case int:
		return matchInteger(int64(p), value)
	case float64:
		return matchFloat(p, value)
	case string:
		return matchText(p, value)
	default:
		return false
	}
}

// isZero is what a null pattern asks for.
func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case int64:
		return v == 0
	case int:
		return v == 0
	case float64:
		return v == 0
	case string:
		return v == ""
	default:
		return false
	}
}

func matchInteger(pattern int64, value any) bool {
	switch v := value.(type) {
	case int64:
		return v == pattern
	case int:
		return int64(v) == pattern
	case float64:
		return v == math.Trunc(v) && int64(v) == pattern
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n == pattern
	default:
		return false
	}
}

func matchFloat(pattern float64, value any) bool {
	switch v := value.(type) {
	case int64:
		return pattern == math.Trunc(pattern) && int64(pattern) == v
	case int:
		return pattern == math.Trunc(pattern) && int(pattern) == v
	case float64:
		return v == pattern
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return err == nil && f == pattern
	default:
		return false
	}
}

// matchText is the little language of text patterns: `|` binds weaker than `&`.
func matchText(pattern string, value any) bool {
	if text, ok := value.(string); ok && text == pattern {
		return true
	}
	for alternative := range strings.SplitSeq(pattern, "|") {
		if matchAll(strings.Trim(alternative, " "), value) {
			return true
		}
	}
	return false
}

func matchAll(pattern string, value any) bool {
	for term := range strings.SplitSeq(pattern, "&") {
		if !matchTerm(strings.Trim(term, " "), value) {
			return false
		}
	}
	return true
}

// matchTerm matches a range, or a text behind an operator.
func matchTerm(term string, value any) bool {
	op := operatorOf(term)
	if op != equal {
		return compare(op, strings.TrimSpace(term[len(op):]), value)
	}
	if low, high, outside, ok := parseRange(term); ok && outside {
		return compare(less, low, value) || compare(greater, high, value)
	} else if ok {
		return compare(greaterOrEqual, low, value) && compare(lessOrEqual, high, value)
	}
	return compare(equal, strings.TrimSpace(term), value)
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

// compare tries durations, then quantities, then text; the first that agrees
// decides, so that `!5` holds for "5.0" as text although the amounts agree.
func compare(op operator, pattern string, value any) bool {
	return compareDuration(op, pattern, value) || compareQuantity(op, pattern, value) || compareText(op, pattern, value)
}

func compareDuration(op operator, pattern string, value any) bool {
	want, err := time.ParseDuration(pattern)
	if err != nil {
		return false
	}
	text, ok := numberText(value)
	if !ok {
		return false
	}
	got, err := time.ParseDuration(text)
	return err == nil && op.holds(compareInt(int64(got), int64(want)))
}

func compareQuantity(op operator, pattern string, value any) bool {
	want, ok := parseQuantity(pattern)
	if !ok {
		return false
	}
	text, ok := numberText(value)
	if !ok {
		return false
	}
	got, ok := parseQuantity(text)
	return ok && op.holds(got.Cmp(want))
}

// compareText knows no order: only `=` and `!` can hold.
func compareText(op operator, pattern string, value any) bool {
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

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// numberText is the text that is read as an amount; null counts as zero.
func numberText(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "0", true
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', 6, 64), true
	default:
		return "", false
	}
}

// scalarText is the text that wildcards see. Floats look like 1.5E+00 there, as
// they do in Kyverno.
func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'E', -1, 64), true
	default:
		return "", false
	}
}

// The longest text and the largest exponent that are read as a quantity:
// comparing amounts such as 1e999999999 would write out all their digits.
const (
	maxQuantityText     = 64
	maxQuantityExponent = 100
)

func parseQuantity(text string) (resource.Quantity, bool) {
	if len(text) > maxQuantityText {
		return resource.Quantity{}, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && strings.ContainsAny(text[i+1:], "0123456789") {
		if exponent, err := strconv.Atoi(text[i+1:]); err != nil || max(exponent, -exponent) > maxQuantityExponent {
			return resource.Quantity{}, false
		}
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// parseRange reads `a-b` (outside is false) and `a!-b` (outside is true), where
// a and b are numbers that a unit may follow. Blanks are not allowed.
func parseRange(term string) (low, high string, outside, ok bool) {
	n := amountLength(term)
	if n == 0 {
		return "", "", false, false
	}
	low, rest := term[:n], term[n:]
	if after, found := strings.CutPrefix(rest, "!-"); found {
		high, outside = after, true
	} else if after, found := strings.CutPrefix(rest, "-"); found {
		high = after
	}
	if high == "" || amountLength(high) != len(high) {
		return "", "", false, false
	}
	return low, high, outside, true
}

// amountLength is how much of the text's beginning is a number with an
// optional sign, fraction and unit; 0 where there is none.
func amountLength(s string) int {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	digits := spanDigits(s[i:])
	if digits == 0 {
		return 0
	}
	i += digits
	if i < len(s) && s[i] == '.' {
		if fraction := spanDigits(s[i+1:]); fraction > 0 {
			i += 1 + fraction
		}
	}
	for i < len(s) && (s[i]|0x20) >= 'a' && (s[i]|0x20) <= 'z' {
		i++
	}
	return i
}

func spanDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
