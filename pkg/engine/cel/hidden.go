package cel

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxVisited bounds the values that are looked at in one argument to find one that is hidden.
const maxVisited = 10_000

// hidden returns what a call makes of values that are hidden; nil where there are none, and where they
// stay what they are: in a text or a list that is put together.
func (c *call) hidden(e *Evaluation, values []ref.Val, unknown *types.Unknown) ref.Val {
	hides := unknown != nil
	for _, v := range values {
		left := maxVisited
		hides = hides || holdsHidden(v, &left)
		e.spend(e.budget.Spend(maxVisited - left))
	}
	switch {
	case !hides:
		return nil
	case unknown == nil && c.Function() == operators.Add:
		e.metHidden = true
		return nil
	}
	e.metHidden = true
	if c.text {
		return types.String(engine.HiddenValue)
	}
	return types.NewUnknown(c.ID(), nil)
}

// holdsHidden reports whether a value holds a text that is hidden. One that is too big to be
// looked at counts as one that does.
func holdsHidden(v ref.Val, left *int) bool {
	if *left--; *left < 0 {
		return true
	}
	switch v := v.(type) {
	case types.String:
		return engine.IsHidden(string(v))
	case *types.Optional:
		return v.HasValue() && holdsHidden(v.GetValue(), left)
	case traits.Mapper:
		if v.Type() != types.MapType { // the policy's variables, which it would evaluate
			return false
		}
		for it := v.Iterator(); it.HasNext() == types.True; {
			if key := it.Next(); holdsHidden(key, left) || holdsHidden(v.Get(key), left) {
				return true
			}
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if holdsHidden(it.Next(), left) {
				return true
			}
		}
	}
	return false
}

// hideMember hides a field or an item of a literal that depends on a value that is hidden: it alone, and not all that stands
// beside it.
func hideMember(_ *interpreter.ExecutionFrame, v ref.Val) ref.Val {
	if types.IsUnknown(v) {
		return types.String(engine.HiddenValue)
	}
	return v
}
