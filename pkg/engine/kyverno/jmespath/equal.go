package jmespath

import (
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

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
