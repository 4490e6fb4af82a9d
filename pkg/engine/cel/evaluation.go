package cel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Budget bounds the cost of all expressions of an Evaluation together. Each single
// expression is limited to one million units as well.
type Budget struct {
	Cost int64
	Of   string // what shares the budget, for errors
}

// MatchBudget is what an API server grants the match conditions of a policy.
func MatchBudget() Budget {
	return Budget{Cost: celconfig.RuntimeCELCostBudgetMatchConditions, Of: "all match conditions of a policy"}
}

// MutationBudget is what an API server grants each mutation of a policy.
func MutationBudget() Budget {
	return Budget{Cost: celconfig.RuntimeCELCostBudget, Of: "a mutation and its variables"}
}

// Evaluation evaluates expressions of one policy on one object. It belongs to one
// goroutine, and never modifies its input.
type Evaluation struct {
	ctx     context.Context
	scope   *Scope
	input   Input
	values  map[string]ref.Val // of names that were used
	budget  Budget
	left    int64 // of the cost
	missing error // a capability that an expression needs and the run lacks
}

var _ cel.Activation = (*Evaluation)(nil)

// Evaluate binds an input. Nothing is computed yet.
func (s *Scope) Evaluate(ctx context.Context, in Input, b Budget) *Evaluation {
	if limit.ClockOf(ctx) == nil {
		ctx, _ = limit.Rule(ctx, nil)
	}
	return &Evaluation{ctx: ctx, scope: s, input: in, values: map[string]ref.Val{}, budget: b, left: b.Cost}
}

// Replace continues with another state of the object. Variables that have a value keep
// it.
func (e *Evaluation) Replace(object map[string]any) {
	e.input.Object = object
	delete(e.values, objectName)
}

// Holds evaluates match conditions in order. The error is a *ConditionError for the first one that is false,
// which counts more than the failure of one before it.
func (e *Evaluation) Holds(conditions []*Expression) error {
	var failures []error
	for _, x := range conditions {
		v, err := e.Value(x)
		var stopped *LimitError
		switch {
		// as the others would
		case err != nil && (errors.As(err, &stopped) || e.ctx.Err() != nil || e.missing != nil):
			return x.At(err)
		case err != nil:
			failures = append(failures, x.At(err))
		case v != types.True:
			return e.Unmet(x)
		}
	}
	return engine.JoinErrors(failures)
}

// Value evaluates an expression. The value may share data with the input. Functions of cel-go do
// not look at the context: one that takes too long is left behind, and the Evaluation must not
// be used again.
func (e *Evaluation) Value(x *Expression) (ref.Val, error) {
	type result struct {
		v   ref.Val
		err error
	}
	done := make(chan result, 1)
	go func() {
		var out result
		defer func() { done <- out }()
		defer e.recoverAs(x, &out.err)
		if out.v, out.err = e.evaluate(x); e.missing != nil {
			out = result{nil, e.missing}
		}
	}()
	timer := time.NewTimer(limit.Left(e.ctx) + time.Millisecond)
	defer timer.Stop()
	for {
		select {
		case r := <-done:
			return r.v, r.err
		case <-e.ctx.Done():
			return nil, e.ctx.Err()
		case <-timer.C:
			var over *limit.Error
			if err := e.ctx.Err(); errors.As(err, &over) {
				return nil, &LimitError{Expression: x.Text, Limit: *over}
			}
			timer.Reset(limit.Left(e.ctx) + time.Millisecond)
		}
	}
}

// evaluate runs a program and charges its cost. It may run in the middle of another
// expression, which uses a variable.
func (e *Evaluation) evaluate(x *Expression) (ref.Val, error) {
	if err := e.ctx.Err(); err != nil {
		return nil, err
	}
	v, details, err := x.program.ContextEval(e.ctx, e)
	if details != nil {
		if err := e.pay(x, details); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, e.failed(x, err)
	}
	left := maxElements
	if subtractSize(v, &left); left < 0 {
		over := limit.Error{What: "elements in one value", Max: maxElements}
		return nil, &LimitError{Expression: x.Text, Limit: over}
	}
	return v, nil
}

// pay charges the cost of an expression to the budget. The cost of the variables that it
// used first has been charged already.
func (e *Evaluation) pay(x *Expression, details *cel.EvalDetails) error {
	cost := details.ActualCost()
	if cost == nil {
		return nil
	}
	if *cost > math.MaxInt64 || int64(*cost) > e.left {
		return costError(x, e.budget)
	}
	e.left -= int64(*cost)
	return nil
}

// failed returns the error of an expression that has no value.
func (e *Evaluation) failed(x *Expression, err error) error {
	var stopped *LimitError
	if errors.As(err, &stopped) { // of a variable that it uses
		return stopped
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return costError(x, Budget{Cost: celconfig.PerCallLimit, Of: "one expression"})
	}
	return cmp.Or(e.ctx.Err(), e.errorOf(x, err))
}

// costError is an expression that costs more than an API server grants.
func costError(x *Expression, granted Budget) error {
	return &LimitError{
		Expression: x.Text,
		Limit:      limit.Error{What: "units of CEL cost for " + granted.Of, Max: int(granted.Cost)}, Server: true,
	}
}

// recoverAs turns a panic in a library into the error of the expression.
func (e *Evaluation) recoverAs(x *Expression, err *error) {
	if p := recover(); p != nil {
		*err = e.errorOf(x, fmt.Errorf("internal error, please report it: %v", p))
	}
}

// errorOf returns the error of an expression that fails on the object.
func (e *Evaluation) errorOf(x *Expression, err error) error {
	if e.scope.environment.unquoted {
		return err
	}
	return fmt.Errorf("expression %q resulted in error: %w", shorten(x.Text), err)
}
