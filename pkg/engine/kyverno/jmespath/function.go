package jmespath

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// function is one entry of the table: what a function takes and what it does.
type function struct {
	params []kind
	// variadic lets the last parameter repeat; unchecked leaves the number of
	// arguments open, as Kyverno does for its clocks.
	variadic, unchecked bool
	call                func(in *Interpreter, args []any) (any, error)
	// notIdempotent is why equal arguments can give another result in another run.
	notIdempotent string
}

// call evaluates the arguments, checks them and calls a function. The error is a *CallError, of
// this function or of one that an argument calls, unless a *limit.Error is the reason.
func call(name string, f *function, arguments []node) node {
	return func(in *Interpreter, value any) (any, error) {
		args, err := evaluate(arguments, in, value)
		if err != nil {
			return nil, err
		}
		if err := f.check(args); err != nil {
			return nil, named(name, err)
		}
		if err := in.clock.Steps(stepsOf(args...)); err != nil {
			return nil, err
		}
		result, err := f.call(in, args)
		if text, ok := result.(string); ok && err == nil {
			err = limit.Size(len(text))
		}
		if err != nil {
			return nil, named(name, err)
		}
		return result, in.clock.Steps(stepsOf(result))
	}
}

// stepsOf is how long functions take for large values, in steps of the clock.
func stepsOf(values ...any) int {
	const bytesOfStep, itemsOfStep = 1 << 10, 1 << 5
	steps := 0
	for _, value := range values {
		switch v := value.(type) {
		case string:
			steps += len(v) / bytesOfStep
		case []any:
			steps += len(v) / itemsOfStep
		case map[string]any:
			steps += len(v) / itemsOfStep
		}
	}
	return steps
}

func named(function string, err error) error {
	var exceeded *limit.Error
	var inner *CallError
	if errors.As(err, &exceeded) || errors.As(err, &inner) {
		return err
	}
	return &CallError{Function: function, Err: err}
}

func (f *function) check(args []any) error {
	if f.unchecked {
		return nil
	}
	if len(args) < len(f.params) || (len(args) > len(f.params) && !f.variadic) {
		return fmt.Errorf("incorrect number of args: %d, expected %d", len(args), len(f.params))
	}
	for i, arg := range args {
		want := f.params[min(i, len(f.params)-1)]
		if !want.admits(arg) {
			return fmt.Errorf("argument #%d is not of type %s", i+1, want)
		}
	}
	return nil
}

// CallError is a function that has no result for its arguments.
type CallError struct {
	Function string
	Err      error
}

// Error gives function and reason, as Kyverno words it.
func (e *CallError) Error() string {
	return fmt.Sprintf("JMESPath function '%s': %s", e.Function, engine.Shorten(e.Err.Error(), maxReason))
}

// Unwrap returns the reason.
func (e *CallError) Unwrap() error { return e.Err }

// onString is a function of one string.
func onString[R any](call func(string) R) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) { return call(args[0].(string)), nil }
}

// onStrings is a function of two strings.
func onStrings[R any](call func(a, b string) R) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) { return call(args[0].(string), args[1].(string)), nil }
}

// onNumber is a function of one number.
func onNumber(call func(float64) float64) func(*Interpreter, []any) (any, error) {
	return func(_ *Interpreter, args []any) (any, error) {
		f, _ := Number(args[0])
		return canonical(call(f)), nil
	}
}

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
		return k&anArray != 0 || k&numbers != 0 && !slices.ContainsFunc(v, isNoNumber) || k&strs != 0 && !slices.ContainsFunc(v, isNoString)
	}
	return k&aNumber != 0 && isNumber(arg)
}

func isNumber(v any) bool   { _, ok := Number(v); return ok }
func isNoNumber(v any) bool { return !isNumber(v) }
func isNoString(v any) bool { _, ok := v.(string); return !ok }
