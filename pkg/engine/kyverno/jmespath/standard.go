package jmespath

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The standard functions of JMESPath, also on integers. Arguments have been checked, so type assertions hold.

func avg(_ *Interpreter, args []any) (any, error) {
	list := args[0].([]any)
	total := 0.0
	for _, item := range list {
		f, _ := Number(item)
		total += f
	}
	return finite(total / float64(len(list)))
}

func contains(in *Interpreter, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		part, ok := args[1].(string)
		return ok && strings.Contains(text, part), nil
	}
	return slices.ContainsFunc(args[0].([]any), func(item any) bool { return Equal(in.clock, item, args[1]) }),
		nil
}

func join(_ *Interpreter, args []any) (any, error) {
	separator, list := args[0].(string), args[1].([]any)
	parts := make([]string, len(list))
	size := len(separator) * len(list)
	for i, item := range list {
		parts[i] = item.(string)
		size += len(parts[i])
	}
	if err := limit.Size(size); err != nil {
		return nil, err
	}
	return strings.Join(parts, separator), nil
}

func keys(_ *Interpreter, args []any) (any, error) {
	object := args[0].(map[string]any)
	list := make([]any, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		list = append(list, key)
	}
	return list, nil
}

func values(_ *Interpreter, args []any) (any, error) { return valuesOf(args[0].(map[string]any)), nil }

// valuesOf lists the values of an object in key order.
func valuesOf(object map[string]any) []any {
	list := make([]any, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		list = append(list, object[key])
	}
	return list
}

// lengthOf counts the characters of a string.
func lengthOf(_ *Interpreter, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return int64(utf8.RuneCountInString(v)), nil
	case []any:
		return int64(len(v)), nil
	}
	return int64(len(args[0].(map[string]any))), nil
}

func mapList(_ *Interpreter, args []any) (any, error) {
	list := args[1].([]any)
	mapped := make([]any, len(list))
	for i, item := range list {
		result, err := args[0].(expressionRef)(item)
		if err != nil {
			return nil, err
		}
		mapped[i] = result
	}
	return mapped, nil
}

func merge(_ *Interpreter, args []any) (any, error) {
	merged := map[string]any{}
	for _, arg := range args {
		maps.Copy(merged, arg.(map[string]any))
	}
	return merged, nil
}

func notNull(_ *Interpreter, args []any) (any, error) {
	for _, arg := range args {
		if arg != nil {
			return arg, nil
		}
	}
	return nil, nil
}

func reverse(_ *Interpreter, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		runes := []rune(text)
		slices.Reverse(runes)
		return string(runes), nil
	}
	reversed := slices.Clone(args[0].([]any))
	slices.Reverse(reversed)
	return reversed, nil
}

func toArray(_ *Interpreter, args []any) (any, error) {
	if _, ok := args[0].([]any); ok {
		return args[0], nil
	}
	return []any{args[0]}, nil
}

func toString(_ *Interpreter, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		return text, nil
	}
	err := limit.Value(args[0])
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(asFloats(args[0]))
	return string(data), err
}

// toNumber returns null for other values.
func toNumber(_ *Interpreter, args []any) (any, error) {
	text, ok := args[0].(string)
	if !ok {
		if isNumber(args[0]) {
			return args[0], nil
		}
		return nil, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, nil
	}
	return finite(f)
}

func typeOf(_ *Interpreter, args []any) (any, error) {
	switch args[0].(type) {
	case nil:
		return "null", nil
	case string:
		return "string", nil
	case bool:
		return "boolean", nil
	case []any:
		return "array", nil
	case map[string]any:
		return "object", nil
	}
	if isNumber(args[0]) {
		return "number", nil
	}
	return nil, errors.New("unknown type")
}

// compareScalars orders two strings or two numbers; other values have no order.
func compareScalars(a, b any) (int, bool) {
	if x, ok := a.(string); ok {
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	}
	return compareNumbers(a, b)
}

type keyed struct{ element, key any }

// keysOf evaluates an expression, if there is one, on each element of a list; else elements are their own
// keys. Keys must be all numbers or all strings.
func keysOf(args []any) ([]keyed, error) {
	list := args[0].([]any)
	result := make([]keyed, len(list))
	for i, element := range list {
		result[i] = keyed{element, element}
		if len(args) == 1 {
			continue
		}
		key, err := args[1].(expressionRef)(element)
		if err != nil {
			return nil, err
		}
		if _, ok := compareScalars(key, key); !ok && len(list) > 1 {
			return nil, errors.New("invalid type, must be number or string")
		}
		result[i].key = key
		if _, ok := compareScalars(result[0].key, key); !ok && len(list) > 1 {
			return nil, errors.New("invalid type, numbers and strings do not compare")
		}
	}
	return result, nil
}

func byKey(a, b keyed) int {
	order, _ := compareScalars(a.key, b.key)
	return order
}

func sortList(_ *Interpreter, args []any) (any, error) {
	elements, err := keysOf(args)
	slices.SortStableFunc(elements, byKey)
	sorted := make([]any, len(elements))
	for i := range elements {
		sorted[i] = elements[i].element
	}
	return sorted, err
}

// extreme returns the first element with the largest key or, for a negative sign, the smallest; null for an
// empty list.
func extreme(sign int) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) {
		elements, err := keysOf(args)
		if len(elements) == 0 {
			return nil, err
		}
		return slices.MaxFunc(elements, func(a, b keyed) int { return sign * byKey(a, b) }).element, err
	}
}
