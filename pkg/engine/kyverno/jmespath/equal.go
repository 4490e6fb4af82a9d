package jmespath

// Equal compares two values; numbers by value, whether int64 or float64. A
// comparison of absurdly large values ends with false.
func Equal(a, b any) bool {
	budget := newBudget(0)
	equal, err := budget.equal(a, b)
	return err == nil && equal
}

// equal compares two values; numbers by value, whether int64 or float64. The
// error is a *engine.LimitError.
func (b *budget) equal(x, y any) (bool, error) {
	if err := b.spend(1); err != nil {
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
		return b.equalLists(x, y)
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok {
			return false, nil
		}
		return b.equalObjects(x, y)
	}
	order, ok := compareNumbers(x, y)
	return ok && order == 0, nil
}

func (b *budget) equalLists(x, y []any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for i := range x {
		if same, err := b.equal(x[i], y[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (b *budget) equalObjects(x, y map[string]any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for key := range x {
		other, found := y[key]
		if !found {
			return false, nil
		}
		if same, err := b.equal(x[key], other); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}
