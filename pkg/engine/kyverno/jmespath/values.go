package jmespath

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// integer reads a number that is whole.
func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<63 {
			return int64(n), true
		}
	}
	return 0, false
}

// number reads any number.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case int32:
		return float64(n), true
	}
	return 0, false
}

// canonical returns a number as unstructured objects hold it: whole ones as
// int64. What JSON cannot hold (infinities, NaN) is null.
func canonical(f float64) any {
	const exact = 1 << 53 // beyond it a float64 no longer tells integers apart
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

// truthy is JMESPath's: null, false and whatever is empty are false.
func truthy(value any) bool {
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

// Equal compares two JSON values; numbers by value, whether int64 or float64.
// A comparison of absurdly large values ends with false.
func Equal(a, b any) bool {
	e := evaluation{budget: maxSteps, left: maxSteps}
	equal, err := e.equal(a, b)
	return err == nil && equal
}

func (e *evaluation) equal(a, b any) (bool, error) {
	if err := e.spend(1); err != nil {
		return false, err
	}
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case bool:
		y, ok := b.(bool)
		return ok && x == y, nil
	case string:
		y, ok := b.(string)
		return ok && x == y, nil
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for i := range x {
			if same, err := e.equal(x[i], y[i]); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		for key := range x {
			other, found := y[key]
			if !found {
				return false, nil
			}
			if same, err := e.equal(x[key], other); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	}
	return equalNumbers(a, b), nil
}

func equalNumbers(a, b any) bool {
	if i, ok := a.(int64); ok { // exact where both are integers
		if j, ok := b.(int64); ok {
			return i == j
		}
	}
	x, ok := number(a)
	y, also := number(b)
	return ok && also && x == y
}

// sortedKeys is the order in which objects are walked.
func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// jsonText is a value's JSON, with characters escaped as encoding/json does by default.
func (e *evaluation) jsonText(value any) (string, error) {
	size, err := e.measure(value)
	if err != nil {
		return "", err
	}
	if err := e.spendText(size); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
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
