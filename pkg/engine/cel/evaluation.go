package cel

import (
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
)

// Budget bounds what the expressions of an Evaluation may cost together; each
// evaluation of a single expression is bounded by one million units besides.
type Budget struct {
	Cost int64
	Of   string // what shares the budget, in errors
}

// MatchBudget and MutationBudget are what an API server grants the match
// conditions of a policy, and each of its mutations.
func MatchBudget() Budget {
	return Budget{Cost: celconfig.RuntimeCELCostBudgetMatchConditions, Of: "all match conditions of a policy"}
}

// MutationBudget is what an API server grants each mutation of a policy.
func MutationBudget() Budget {
	return Budget{Cost: celconfig.RuntimeCELCostBudget, Of: "a mutation and its variables"}
}

// maxDuration bounds one expression in time, in case cost does not tell: it is
// the time that an API server grants a webhook.
const maxDuration = 10 * time.Second

// Evaluation evaluates expressions of one policy on one object. It belongs to one
// goroutine, and never changes what it was given.
type Evaluation struct {
	ctx        context.Context
	activation *activation
	budget     Budget
	left       int64
	missing    error // a capability that an expression asked for in vain
	// taint watches the expression that is being evaluated; nil while the run
	// knows no Secrets.
	taint *taint
}

// Evaluate binds an input. Nothing is computed yet.
func (s *Scope) Evaluate(ctx context.Context, in Input, b Budget) *Evaluation {
	e := &Evaluation{ctx: ctx, budget: b, left: b.Cost}
	e.activation = &activation{evaluation: e, scope: s, input: in}
	return e
}

// Replace goes on with another state of the object. Variables that have a value
// keep it.
func (e *Evaluation) Replace(object map[string]any) { e.activation.replace(object) }

// Condition evaluates an expression that Scope.Condition compiled.
func (e *Evaluation) Condition(x *Expression) (bool, error) {
	v, err := e.Value(x)
	if err != nil {
		return false, err
	}
	return v == types.True, nil
}

// Value evaluates an expression. The value may share data with the input.
func (e *Evaluation) Value(x *Expression) (v ref.Val, err error) {
	defer recoverAs(x, &err)
	v, err = e.evaluate(x)
	if e.missing != nil {
		return nil, e.missing
	}
	if err != nil {
		return nil, err
	}
	return v, checkSize(x, v)
}

// checkSize refuses a value that is too big to be looked at.
func checkSize(x *Expression, v ref.Val) error {
	if fits(v) {
		return nil
	}
	return &LimitError{Expression: x.text, Limit: fmt.Sprintf("%d elements in one value", maxElements)}
}

// evaluate runs a program and pays for it. It may be in the middle of another
// expression, which uses a variable.
func (e *Evaluation) evaluate(x *Expression) (ref.Val, error) {
	defer func(outer *taint) { e.taint = outer }(e.taint)
	if err := e.ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(e.ctx, maxDuration)
	defer cancel()
	program, err := e.begin(x)
	if err != nil {
		return nil, err
	}
	v, details, err := program.ContextEval(ctx, e.activation)
	if details != nil {
		if err := e.pay(x, details); err != nil {
			return nil, err
		}
	}
	if err == nil {
		return v, nil
	}
	return nil, e.failed(ctx, x, err)
}

// begin returns the program of an expression: the watched one, with a taint, where
// there is something to watch: the run knows Secrets, or this expression can be the first
// to read one, by a language's own variables.
func (e *Evaluation) begin(x *Expression) (cel.Program, error) {
	in := &e.activation.input
	secrets := in.Secrets
	if secrets == nil || (!secrets.Any() && len(in.Extra) == 0) {
		e.taint = nil
		return x.program, nil
	}
	e.taint = newTaint(secrets)
	program, err := x.watched()
	if err != nil {
		return nil, &EvaluationError{Expression: x.text, Err: err}
	}
	return program, nil
}

// pay takes what an expression cost off the budget. What the variables cost that
// it used first has been taken off already.
func (e *Evaluation) pay(x *Expression, details *cel.EvalDetails) error {
	cost := details.ActualCost()
	if cost == nil {
		return nil
	}
	if *cost > math.MaxInt64 || int64(*cost) > e.left {
		return &LimitError{Expression: x.text, Limit: fmt.Sprintf("%d units of CEL cost for %s", e.budget.Cost, e.budget.Of)}
	}
	e.left -= int64(*cost)
	return nil
}

// failed says why an expression has no value.
func (e *Evaluation) failed(ctx context.Context, x *Expression, err error) error {
	var limit *LimitError
	if errors.As(err, &limit) { // of a variable that it uses
		return limit
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return &LimitError{Expression: x.text, Limit: fmt.Sprintf("%d units of CEL cost for one expression", celconfig.PerCallLimit)}
	}
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &LimitError{Expression: x.text, Limit: maxDuration.String() + " for one expression"}
	}
	return &EvaluationError{Expression: x.text, Err: err}
}

// recoverAs turns a panic in a library, which an expression set off, into its error.
func recoverAs(x *Expression, err *error) {
	if p := recover(); p != nil {
		*err = &EvaluationError{Expression: x.text, Err: fmt.Errorf("internal error, please report it: %v", p)}
	}
}
