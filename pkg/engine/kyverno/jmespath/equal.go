package jmespath

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"

// Equal compares two values; numbers by value, whether int64 or float64. The
// error is that of the clock.
func Equal(c *limit.Clock, x, y any) (bool, error) {
	if err := c.Step(); err != nil {
		return false, err
	}
	switch x := x.(type) {
	case nil:
		return y == nil, nil
	case bool:
		y, ok := y.(bool)
		return ok && x == y, nil
	case string:
		y, ok := y.(string)
		return ok && x == y, nil
	case []any:
		y, ok := y.([]any)
		if !ok {
			return false, nil
		}
		return equalLists(c, x, y)
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok {
			return false, nil
		}
		return equalObjects(c, x, y)
	}
	order, ok := compareNumbers(x, y)
	return ok && order == 0, nil
}

func equalLists(c *limit.Clock, x, y []any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for i := range x {
		if same, err := Equal(c, x[i], y[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func equalObjects(c *limit.Clock, x, y map[string]any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for key := range x {
		other, found := y[key]
		if !found {
			return false, nil
		}
		if same, err := Equal(c, x[key], other); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
