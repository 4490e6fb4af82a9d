package jmespath

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Truthy reports whether a value counts as true: all but null, false and what is empty.
func Truthy(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// scalarText is the text of a scalar where a function takes scalars for texts.
// Kyverno prints numbers with the precision of a float32, which garbles
// integers from 16777217 on; here numbers keep their digits.
func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	if n, ok := integer(value); ok {
		return strconv.FormatInt(n, 10), true
	}
	return "", false
}

// Equal compares two values; numbers by value, whether int64 or float64. Nothing is
// equal once the time of the clock has passed, which its error says.
func Equal(c *limit.Clock, x, y any) bool {
	if c.Step() != nil {
		return false
	}
	same := func(x, y any) bool { return Equal(c, x, y) }
	switch x := x.(type) {
	case nil, bool, string:
		return x == y
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, same)
	case map[string]any:
		y, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, y, same)
	}
	order, ok := compareNumbers(x, y)
	return ok && order == 0
}

// integer reads a number that is whole.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<63 {
			return int64(n), true
		}
	}
	return 0, false
}

// Number reads any number.
func Number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	}
	return 0, false
}

// compareNumbers orders two numbers, and reports whether they are numbers.
func compareNumbers(a, b any) (int, bool) {
	if i, ok := a.(int64); ok { // exact where both are integers
		if j, ok := b.(int64); ok {
			return cmp.Compare(i, j), true
		}
	}
	x, ok := Number(a)
	y, also := Number(b)
	return cmp.Compare(x, y), ok && also
}

// canonical returns a number as unstructured objects hold it: whole ones as
// int64. What JSON cannot hold (infinities, NaN) is null.
func canonical(f float64) any {
	const exact = 1 << 53 // beyond it a float64 no longer distinguishes integers
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil
	case f == math.Trunc(f) && math.Abs(f) <= exact:
		return int64(f)
	default:
		return f
	}
}

// canonicalTree does the same for all numbers of a freshly decoded value, in place.
func canonicalTree(value any) any {
	switch v := value.(type) {
	case float64:
		return canonical(v)
	case []any:
		for i := range v {
			v[i] = canonicalTree(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = canonicalTree(v[key])
		}
	}
	return value
}

// The bounds of a quantity, in characters.
const (
	maxQuantity = 64
	maxExponent = 3
)

// ParseQuantity is resource.ParseQuantity without its readiness to compute with
// numbers of billions of digits ("1e999999999").
func ParseQuantity(text string) (resource.Quantity, error) {
	exponent := strings.LastIndexAny(text, "eE")
	if len(text) > maxQuantity || (exponent >= 0 && len(text)-exponent-1 > maxExponent) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

// ParseDuration reads a duration as Go writes it.
func ParseDuration(text string) (time.Duration, bool) {
	d, err := time.ParseDuration(text)
	return d, err == nil
}
