package jmespath

import "github.com/kubectl-mutate/kubectl-mutate/pkg/engine"

// Equal compares two values; numbers by value, whether int64 or float64. The
// error is that of the budget.
func Equal(b *engine.Budget, x, y any) (bool, error) {
	if err := b.Spend(1); err != nil {
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
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return x == y, b.Read(len(x))
	case []any:
		y, ok := y.([]any)
		if !ok {
			return false, nil
		}
		return equalLists(b, x, y)
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok {
			return false, nil
		}
		return equalObjects(b, x, y)
	}
	order, ok := compareNumbers(x, y)
	return ok && order == 0, nil
}

func equalLists(b *engine.Budget, x, y []any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for i := range x {
		if same, err := Equal(b, x[i], y[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func equalObjects(b *engine.Budget, x, y map[string]any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for key := range x {
		if err := b.Read(len(key)); err != nil {
			return false, err
		}
		other, found := y[key]
		if !found {
			return false, nil
		}
		if same, err := Equal(b, x[key], other); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
