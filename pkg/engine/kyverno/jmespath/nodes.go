package jmespath

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// node evaluates one construct of an expression on a value.
type node func(in *Interpreter, value any) (any, error)

// expressionRef is an argument that the function evaluates: &name.
type expressionRef func(value any) (any, error)

// lenient turns a missing key into null.
func lenient(n node) node {
	return func(in *Interpreter, value any) (any, error) {
		if err := in.clock.Step(); err != nil {
			return nil, err
		}
		result, err := n(in, value)
		if isNotFound(err) {
			return nil, nil
		}
		return result, err
	}
}

// tolerant is the node to the left of [], .* and [?...]. As in the fork, missing keys and failing functions
// are null there, but not the errors of limits and of loading data.
func tolerant(n node) node {
	return func(in *Interpreter, value any) (any, error) {
		result, err := n(in, value)
		if _, failed := err.(*CallError); failed || isNotFound(err) { //nolint:errorlint // wrapped ones come from loading data
			return nil, nil
		}
		return result, err
	}
}

func then(left, right node) node {
	return func(in *Interpreter, value any) (any, error) {
		result, err := left(in, value)
		if err != nil {
			return nil, err
		}
		return right(in, result)
	}
}

func field(name string) node {
	missing := &NotFoundError{Key: name}
	return func(_ *Interpreter, value any) (result any, err error) {
		var found bool
		switch v := value.(type) {
		case map[string]any:
			result, found = v[name]
		case Object:
			result, found, err = v.Field(name)
		default:
			return nil, nil
		}
		if err == nil && !found {
			err = missing
		}
		return result, err
	}
}

func literal(value any) node { return func(*Interpreter, any) (any, error) { return value, nil } }

func current(_ *Interpreter, value any) (any, error) {
	if o, ok := value.(Object); ok {
		return o.Fields()
	}
	return value, nil
}

// deferred leaves the evaluation of a node to the function.
func deferred(n node) node {
	return func(in *Interpreter, _ any) (any, error) {
		return expressionRef(func(value any) (any, error) { return n(in, value) }), nil
	}
}

func not(_ *Interpreter, value any) (any, error) { return !Truthy(value), nil }

// either returns the left value if its truth equals decides, else the right value.
func either(left, right node, decides bool) node {
	return func(in *Interpreter, value any) (any, error) {
		result, err := left(in, value)
		if err != nil || Truthy(result) == decides {
			return result, err
		}
		return right(in, value)
	}
}

func compared(left, right node, compare func(in *Interpreter, a, b any) any) node {
	return func(in *Interpreter, value any) (any, error) {
		sides, err := evaluate([]node{left, right}, in, value)
		if err != nil {
			return nil, err
		}
		return compare(in, sides[0], sides[1]), nil
	}
}

func evaluate(nodes []node, in *Interpreter, value any) ([]any, error) {
	results := make([]any, len(nodes))
	for i, n := range nodes {
		var err error
		if results[i], err = n(in, value); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// build combines the results of several nodes; null stays null.
func build(members []node, of func(items []any) any) node {
	return func(in *Interpreter, value any) (any, error) {
		if value == nil {
			return nil, nil
		}
		items, err := evaluate(members, in, value)
		if err != nil {
			return nil, err
		}
		return of(items), nil
	}
}

// project evaluates a node on each item of a list, and drops nulls.
func project(items, right node) node {
	return func(in *Interpreter, value any) (any, error) {
		result, err := items(in, value)
		list, ok := result.([]any)
		if err != nil || !ok {
			return nil, err
		}
		collected := make([]any, 0, len(list))
		for _, element := range list {
			item, err := right(in, element)
			if err != nil {
				return nil, err
			}
			if item != nil {
				collected = append(collected, item)
			}
		}
		return collected, nil
	}
}

func eachValue(_ *Interpreter, value any) (any, error) {
	if object, ok := value.(map[string]any); ok {
		return valuesOf(object), nil
	}
	return nil, nil
}

func filter(condition node) node {
	return func(in *Interpreter, value any) (any, error) {
		list, ok := value.([]any)
		if !ok {
			return nil, nil
		}
		kept := make([]any, 0, len(list))
		for _, element := range list {
			holds, err := condition(in, element)
			if err != nil {
				return nil, err
			}
			if Truthy(holds) {
				kept = append(kept, element)
			}
		}
		return kept, nil
	}
}

const bytesOfItem = 16

func flatten(_ *Interpreter, value any) (any, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, nil
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

func index(i int) node {
	return func(_ *Interpreter, value any) (any, error) {
		list, _ := value.([]any)
		at := i
		if at < 0 {
			at += len(list)
		}
		if at < 0 || at >= len(list) {
			return nil, nil
		}
		return list[at], nil
	}
}

// slice selects elements like Python; each of from, to and step may be nil.
func slice(of []*int) node {
	return func(_ *Interpreter, value any) (any, error) {
		list, ok := value.([]any)
		if !ok {
			return nil, nil
		}
		step := 1
		if of[2] != nil {
			step = *of[2]
		}
		if step == 0 {
			return nil, errors.New("invalid slice, step cannot be 0")
		}
		low, high := 0, len(list)
		from, to := low, high
		if step < 0 {
			low, high = -1, len(list)-1
			from, to = high, low
		}
		for bound, i := range map[*int]*int{&from: of[0], &to: of[1]} {
			if i != nil && *i < 0 {
				*bound = max(*i+len(list), low)
			} else if i != nil {
				*bound = min(*i, high)
			}
		}
		step = min(max(step, -len(list)-1), len(list)+1) // so that adding it does not overflow
		picked := []any{}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			picked = append(picked, list[i])
		}
		return picked, nil
	}
}
