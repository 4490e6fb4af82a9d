package jmespath

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/randomtext"
)

// env is what a function sees besides its arguments: the time of the rule, and the world.
type env struct {
	*limit.Clock
	world *world
}

// world is a fixed clock, and a seeded source of random texts.
type world struct {
	Now    time.Time
	Random *randomtext.Source
	Hides  bool // engine.HiddenValue stands for values that are not known
}

// hidden reports whether a value is a text that is hidden.
func (e *env) hidden(value any) bool {
	text, ok := value.(string)
	return ok && e.world.Hides && engine.IsHidden(text)
}

// holdsHidden reports whether a value holds a text that is hidden. The error is a *limit.Error.
func (e *env) holdsHidden(values ...any) (bool, error) {
	if !e.world.Hides {
		return false, nil
	}
	if err := limit.Value(values); err != nil { // before it is looked at
		return false, err
	}
	return slices.ContainsFunc(values, engine.HoldsHidden), nil
}

// expressionRef is an argument that is evaluated by the function: &name.
type expressionRef func(value any) (any, error)

// function is one that expressions may call.
type function struct {
	name string
	*definition
}

// lookupFunction finds a function by its name.
func lookupFunction(name string) (function, bool) {
	d, ok := definitions[name]
	return function{name: name, definition: d}, ok
}

// NotIdempotent returns why equal arguments can give another result in another run,
// such as "reads the clock: time_now()"; empty where they cannot.
func (f function) NotIdempotent() string { return f.notIdempotent }

// Call checks the arguments and calls the function. The error is a *CallError, of
// this function or of one that an Expression calls, unless a *limit.Error
// is the reason.
func (f function) Call(e *env, args []any) (any, error) {
	if err := f.check(args); err != nil {
		return nil, f.named(err)
	}
	if err := e.Steps(stepsOf(args...)); err != nil {
		return nil, err
	}
	result, err := f.call(e, args)
	if text, ok := result.(string); ok && err == nil {
		err = limit.Size(len(text))
	}
	if err != nil {
		return nil, f.named(err)
	}
	return result, e.Steps(stepsOf(result))
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

func (f function) named(err error) error {
	var exceeded *limit.Error
	var inner *CallError
	if errors.As(err, &exceeded) || errors.As(err, &inner) {
		return err
	}
	return &CallError{Function: f.name, Err: err}
}

func (d *definition) check(args []any) error {
	if d.unchecked {
		return nil
	}
	if len(args) < len(d.params) || (len(args) > len(d.params) && !d.variadic) {
		return fmt.Errorf("incorrect number of args: %d, expected %d", len(args), len(d.params))
	}
	for i, arg := range args {
		want := d.params[min(i, len(d.params)-1)]
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

// UnsupportedError is the reason of a CallError where the function needs
// what no evaluation may do.
type UnsupportedError struct{ Needs string }

// Error names what is needed.
func (e *UnsupportedError) Error() string { return "unsupported: it needs " + e.Needs }
