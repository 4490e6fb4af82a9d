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

// scalar is a compiled pattern that is neither a map nor a list.
type scalar interface {
	// holds reports whether a value that is no list matches.
	holds(value any) bool
}

func compileScalar(pattern any) scalar {
	switch p := pattern.(type) {
	case nil:
		return zero{}
	case bool:
		return boolean(p)
	case int64:
		return integer(p)
	case int:
		return integer(p)
	case float64:
		return float(p)
	case string:
		return compileText(p)
	default:
		return never{}
	}
}

// never is the pattern of a type that JSON does not have.
type never struct{}

func (never) holds(any) bool { return false }

// zero is what a null pattern asks for.
type zero struct{}

func (zero) holds(value any) bool {
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

type boolean bool

func (p boolean) holds(value any) bool {
	v, ok := value.(bool)
	return ok && v == bool(p)
}

type integer int64

func (p integer) holds(value any) bool {
	switch v := value.(type) {
	case int64:
		return v == int64(p)
	case int:
		return int64(v) == int64(p)
	case float64:
		return v == math.Trunc(v) && int64(v) == int64(p)
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n == int64(p)
	default:
		return false
	}
}

type float float64

func (p float) holds(value any) bool {
	whole := float64(p) == math.Trunc(float64(p))
	switch v := value.(type) {
	case int64:
		return whole && int64(p) == v
	case int:
		return whole && int(p) == v
	case float64:
		return v == float64(p)
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return err == nil && f == float64(p)
	default:
		return false
	}
}

// text is the little language of text patterns: `|` binds weaker than `&`.
type text struct {
	whole string
	terms []term
	one   [1]term // room for the terms of most patterns
}

// term is a comparison, or a range, which is two of them.
type term struct {
	comparison
	other  *comparison // nil where there is but one
	either bool        // one of the two is enough
	last   bool        // a `|`, or the end, comes next
}

func compileText(pattern string) *text {
	t := &text{whole: pattern}
	t.terms = t.one[:0]
	for alternative := range strings.SplitSeq(pattern, "|") {
		for part := range strings.SplitSeq(strings.Trim(alternative, " "), "&") {
			t.terms = append(t.terms, compileTerm(strings.Trim(part, " ")))
		}
		t.terms[len(t.terms)-1].last = true
	}
	return t
}

// compileTerm reads a range, or a text behind an operator.
func compileTerm(source string) term {
	op := operatorOf(source)
	low, high, outside, isRange := parseRange(source)
	switch {
	case op != equal || !isRange:
		return term{comparison: newComparison(op, strings.TrimSpace(source[len(op):]))}
	case outside:
		other := newComparison(greater, high)
		return term{comparison: newComparison(less, low), other: &other, either: true}
	default:
		other := newComparison(lessOrEqual, high)
		return term{comparison: newComparison(greaterOrEqual, low), other: &other}
	}
}

func (t *text) holds(value any) bool {
	if text, ok := value.(string); ok && text == t.whole {
		return true
	}
	holds := true // all terms since the last `|`
	for i := range t.terms {
		holds = holds && t.terms[i].holds(value)
		if t.terms[i].last {
			if holds {
				return true
			}
			holds = true
		}
	}
	return false
}

func (t *term) holds(value any) bool {
	holds := t.comparison.holds(value)
	if t.other == nil || holds == t.either {
		return holds
	}
	return t.other.holds(value)
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

// comparison is an operator and what it compares with, read as all that it can be.
type comparison struct {
	op         operator
	text       string
	duration   time.Duration
	isDuration bool
	quantity   resource.Quantity
	isQuantity bool
}

func newComparison(op operator, text string) comparison {
	c := comparison{op: op, text: text}
	if mayBeDuration(text) {
		duration, err := time.ParseDuration(text)
		c.duration, c.isDuration = duration, err == nil
	}
	c.quantity, c.isQuantity = parseQuantity(text)
	return c
}

// mayBeDuration reports whether a text can be a duration, to avoid the cost of the
// error of time.ParseDuration.
func mayBeDuration(text string) bool {
	return text != "" && strings.IndexByte("+-.0123456789", text[0]) >= 0
}

// holds tries durations, then quantities, then text; the first that agrees
// decides, so that `!5` holds for "5.0" as text although the amounts agree.
func (c *comparison) holds(value any) bool {
	if c.isDuration || c.isQuantity {
		if amount, ok := numberText(value); ok && (c.holdsDuration(amount) || c.holdsQuantity(amount)) {
			return true
		}
	}
	return c.holdsText(value)
}

func (c *comparison) holdsDuration(text string) bool {
	if !c.isDuration || !mayBeDuration(text) {
		return false
	}
	got, err := time.ParseDuration(text)
	return err == nil && c.op.holds(cmp.Compare(got, c.duration))
}

func (c *comparison) holdsQuantity(text string) bool {
	if !c.isQuantity {
		return false
	}
	got, ok := parseQuantity(text)
	return ok && c.op.holds(got.Cmp(c.quantity))
}

// holdsText knows no order: only `=` and `!` can hold.
func (c *comparison) holdsText(value any) bool {
	if c.op != equal && c.op != notEqual {
		return false
	}
	text, ok := scalarText(value)
	return ok && selector.MatchWildcard(c.text, text) == (c.op == equal)
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
