package jmespath

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Truthy reports whether a value counts as true: all but null, false and empty values.
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

// scalarText returns a scalar as a string, for functions that accept scalars as strings. Kyverno prints
// numbers with float32 precision, which garbles integers from 16777217 on; here they keep their digits.
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

// Equal compares two values, and numbers by value (int64 or float64). Nothing is equal after the clock's time
// has passed; the clock has that error.
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

// compareNumbers orders two values, and reports whether both are numbers.
func compareNumbers(a, b any) (int, bool) {
	x, ok := Number(a)
	y, also := Number(b)
	return cmp.Compare(x, y), ok && also
}

// canonical returns a number as in unstructured objects: whole numbers as int64.
func canonical(f float64) any {
	if f == math.Trunc(f) {
		if n, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64); err == nil {
			return n
		}
	}
	return f
}

// asFloats returns a value with each number as float64, as Kyverno decodes its context from the request.
// (After the first matching rule, and in rules with targets, Kyverno 1.19 has exact integers:
// pkg/engine/engine.go, invokeRuleHandler.)
func asFloats(value any) any {
	if !hasLarge(value) {
		return value
	}
	return canonicalTree(runtime.DeepCopyJSONValue(value))
}

// hasLarge reports whether there are integers that a float64 may not hold.
func hasLarge(value any) bool {
	const exact = 1 << 53
	switch v := value.(type) {
	case int64:
		return v < -exact || v > exact
	case []any:
		return slices.ContainsFunc(v, hasLarge)
	case map[string]any:
		for _, field := range v {
			if hasLarge(field) {
				return true
			}
		}
	}
	return false
}

// canonicalTree makes all numbers of a value canonical, in place.
func canonicalTree(value any) any {
	switch v := value.(type) {
	case float64:
		return canonical(v)
	case int64:
		return canonical(float64(v))
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

// ParseQuantity is resource.ParseQuantity, but refuses numbers of billions of digits ("1e999999999").
func ParseQuantity(text string) (resource.Quantity, error) {
	exponent := strings.LastIndexAny(text, "eE")
	if len(text) > maxQuantity || (exponent >= 0 && len(text)-exponent-1 > maxExponent) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}
