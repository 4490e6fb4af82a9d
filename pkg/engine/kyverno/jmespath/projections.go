package jmespath

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

type (
	projectionNode struct{ left, right node }            // left[*].right
	valuesNode     struct{ left, right node }            // left.*.right
	filterNode     struct{ left, right, condition node } // left[?condition].right
	flattenNode    struct{ operand node }                // operand[]
	sliceNode      struct{ from, to, step *int }
)

func (n projectionNode) eval(in *Interpreter, value any) (any, error) {
	left, err := lenient(n.left, in, value)
	if err != nil {
		return nil, err
	}
	list, ok := left.([]any)
	if !ok {
		return nil, nil
	}
	return project(n.right, in, list)
}

func (n valuesNode) eval(in *Interpreter, value any) (any, error) {
	left, err := n.left.eval(in, value)
	object, ok := left.(map[string]any)
	if !ok {
		return nil, swallowed(err)
	}
	return project(n.right, in, valuesOf(object))
}

// swallowed hides the errors of the language to the left of [], .* and [?...],
// missing keys and failing functions, as the fork does, but not those of limits
// and of loading data.
func swallowed(err error) error {
	if err == nil || isNotFound(err) {
		return nil
	}
	if _, ok := err.(*CallError); ok { //nolint:errorlint // wrapped ones come from loading data
		return nil
	}
	return err
}

func project(right node, in *Interpreter, list []any) (any, error) {
	collected := make([]any, 0, len(list))
	for _, element := range list {
		item, err := lenient(right, in, element)
		if err != nil {
			return nil, err
		}
		if item != nil {
			collected = append(collected, item)
		}
	}
	return collected, nil
}

func (n filterNode) eval(in *Interpreter, value any) (any, error) {
	left, err := n.left.eval(in, value)
	list, ok := left.([]any)
	if !ok {
		return nil, swallowed(err)
	}
	kept := make([]any, 0, len(list))
	for _, element := range list {
		holds, err := lenient(n.condition, in, element)
		if err != nil {
			return nil, err
		}
		if Truthy(holds) {
			kept = append(kept, element)
		}
	}
	return project(n.right, in, kept)
}

// bytesOfItem is what an item of a list takes in memory.
const bytesOfItem = 16

func (n flattenNode) eval(in *Interpreter, value any) (any, error) {
	left, err := n.operand.eval(in, value)
	list, ok := left.([]any)
	if !ok {
		return nil, swallowed(err)
	}
	flat := make([]any, 0, len(list))
	for _, element := range list {
		inner, ok := element.([]any)
		if !ok {
			inner = []any{element}
		}
		flat = append(flat, inner...)
		if err := limit.Size(bytesOfItem * len(flat)); err != nil {
			return nil, err
		}
	}
	return flat, nil
}

func (n sliceNode) eval(_ *Interpreter, value any) (any, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, nil
	}
	step := 1
	if n.step != nil {
		step = *n.step
	}
	if step == 0 {
		return nil, errors.New("invalid slice, step cannot be 0")
	}
	picked := []any{}
	from, to := n.bounds(len(list), step)
	// The comparison with the distance left keeps a huge step from overflowing.
	for i := from; (step > 0 && i < to) || (step < 0 && i > to); i += step {
		picked = append(picked, list[i])
		if (step > 0 && step >= to-i) || (step < 0 && step <= to-i) {
			break
		}
	}
	return picked, nil
}

func (n sliceNode) bounds(length, step int) (from, to int) {
	from, to = 0, length
	if step < 0 {
		from, to = length-1, -1
	}
	if n.from != nil {
		from = clamp(*n.from, length, step)
	}
	if n.to != nil {
		to = clamp(*n.to, length, step)
	}
	return from, to
}

// clamp brings an index of a slice into the list, as Python does.
func clamp(index, length, step int) int {
	if index < 0 {
		index += length
	}
	low, high := 0, length
	if step < 0 {
		low, high = -1, length-1
	}
	return min(max(index, low), high)
}
