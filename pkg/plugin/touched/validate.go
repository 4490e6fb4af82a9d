package touched

import (
	"errors"
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Bounds of what is read from files. No object that an API server stores comes
// near to them.
const (
	maxDepth = 256
	// Budget bounds the list elements that are looked at to find fields by key.
	Budget = 50_000_000
)

var (
	errDepth   = fmt.Errorf("nested deeper than %d", maxDepth)
	errSteps   = errors.New("too many fields in too long lists")
	errForeign = errors.New("a field is in neither state of its object")
)

// Validate makes sure that a change that was read from a file holds together.
func (t Touched) Validate() error {
	budget := Budget
	return t.ValidateWithin(&budget)
}

// ValidateWithin is Validate for one of many changes that share a budget.
func (t Touched) ValidateWithin(budget *int) error {
	if err := errors.Join(t.Before.Validate(), t.After.Validate()); err != nil {
		return err
	}
	for _, f := range t.Fields {
		if err := t.checkField(f, budget); err != nil {
			return fmt.Errorf("%s: %w", engine.PathString(f.Path), err)
		}
	}
	return nil
}

// checkField makes sure that the states have what the field says of them.
func (t Touched) checkField(f Field, budget *int) error {
	if len(f.Path) > maxDepth {
		return errDepth
	}
	inBefore, err := has(map[string]any(t.Before), f.Path, budget)
	if err != nil {
		return err
	}
	inAfter, err := has(map[string]any(t.After), f.Path, budget)
	if err != nil {
		return err
	}
	wantBefore, wantAfter := f.Kind != engine.Added, f.Kind != engine.Removed
	if (wantBefore && !inBefore) || (wantAfter && !inAfter) {
		return errForeign
	}
	return nil
}

// has looks a path up within a budget.
func has(object any, p fieldpath.Path, budget *int) (bool, error) {
	for _, e := range p {
		if list, ok := object.([]any); ok {
			if *budget -= len(list); *budget < 0 {
				return false, errSteps
			}
		}
		var ok bool
		if object, ok = diff.Lookup(object, fieldpath.Path{e}); !ok {
			return false, nil
		}
	}
	return true, nil
}

// Validate makes sure that a part is not nested too deep to be worked with.
func (p Part) Validate() error {
	if depth(map[string]any(p)) > maxDepth {
		return errDepth
	}
	return nil
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			deepest = max(deepest, depth(x))
		}
	case []any:
		for _, x := range v {
			deepest = max(deepest, depth(x))
		}
	default:
		return 0
	}
	return deepest + 1
}
