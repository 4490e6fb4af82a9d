package jmespath

import (
	"strings"
)

// kind is what a parameter may be: the union of its bits.
type kind uint

const (
	aString kind = 1 << iota
	aNumber
	anArray
	anObject
	numbers // an array of nothing but numbers
	strs    // an array of nothing but strings
	anExpression
	anything
)

// kindNames are the words of Kyverno's error messages.
//
//nolint:gochecknoglobals // an immutable table
var kindNames = []struct {
	kind kind
	name string
}{
	{aString, "String"},
	{aNumber, "Number"},
	{anArray, "Array"},
	{anObject, "Object"},
	{numbers, "Array of Numbers"},
	{strs, "Array of Strings"},
	{anExpression, "Expression"},
}

func (k kind) String() string {
	var names []string
	for _, n := range kindNames {
		if k&n.kind != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " or ")
}

func (k kind) admits(arg any) bool {
	if _, ok := arg.(expressionRef); ok {
		return k&anExpression != 0
	}
	if k&anything != 0 {
		return true
	}
	switch v := arg.(type) {
	case string:
		return k&aString != 0
	case map[string]any:
		return k&anObject != 0
	case []any:
		return k&anArray != 0 || (k&numbers != 0 && all(v, isNumber)) || (k&strs != 0 && all(v, isString))
	}
	return k&aNumber != 0 && isNumber(arg)
}

func all(list []any, holds func(any) bool) bool {
	for _, item := range list {
		if !holds(item) {
			return false
		}
	}
	return true
}

func isNumber(v any) bool { _, ok := Number(v); return ok }
func isString(v any) bool { _, ok := v.(string); return ok }
