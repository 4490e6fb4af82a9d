package pattern

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// holds reports whether a value that is no list matches a pattern that is neither a map nor a list.
func holds(pattern, value any) bool {
	switch p := pattern.(type) {
	case nil:
		return isZero(value)
	case bool:
		return value == any(p)
	case int64:
		return holdsInteger(p, value)
	case int:
		return holdsInteger(int64(p), value)
	case float64:
		return holdsFloat(p, value)
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

func holdsInteger(p int64, value any) bool {
	switch v := value.(type) {
	case int64:
		return v == p
	case int:
		return int64(v) == p
	case float64:
		return v == math.Trunc(v) && int64(v) == p
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n == p
	default:
		return false
	}
}

func holdsFloat(p float64, value any) bool {
	switch v := value.(type) {
	case int64:
		return p == math.Trunc(p) && int64(p) == v
	case int:
		return p == math.Trunc(p) && int(p) == v
	case float64:
		return v == p
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return err == nil && f == p
	default:
		return false
	}
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
	low, high, outside, isRange := parseRange(term)
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
	want, ok := parseDuration(text)
	if !ok {
		return false
	}
	got, ok := parseDuration(amount)
	return ok && op.holds(cmp.Compare(got, want))
}

// parseDuration avoids the cost of an error where a text cannot be a duration.
func parseDuration(text string) (time.Duration, bool) {
	if text == "" || strings.IndexByte("+-.0123456789", text[0]) < 0 {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

func (op operator) comparesQuantities(amount, text string) bool {
	want, ok := parseQuantity(text)
	if !ok {
		return false
	}
	got, ok := parseQuantity(amount)
	return ok && op.holds(got.Cmp(want))
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
