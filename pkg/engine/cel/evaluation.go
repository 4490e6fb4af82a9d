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

// maxDuration bounds one expression in time, in case its cost does not: it is
// the time that an API server grants a webhook.
const maxDuration = 10 * time.Second

// Evaluation evaluates expressions of one policy on one object. It belongs to one
// goroutine, and never modifies its input.
type Evaluation struct {
	ctx        context.Context
	activation *activation
	cost       Budget
	left       int64            // of the cost
	budget     *engine.Budget   // what else the rule may spend on the object
	stopped    error            // why the evaluation cannot go on
	missing    error            // a capability that an expression needs and the run lacks
	rounds     map[int64]rounds // of the macros of the expression that is evaluated, by the IDs of what they go through
	// metHidden reports that an expression came upon a value that is hidden.
	metHidden bool
}

// Evaluate binds an input. Nothing is computed yet.
func (s *Scope) Evaluate(ctx context.Context, in Input, b Budget) *Evaluation {
	e := &Evaluation{ctx: ctx, cost: b, left: b.Cost, budget: in.Budget}
	if e.budget == nil {
		e.budget = engine.NewBudget(ctx)
	}
	e.activation = &activation{evaluation: e, scope: s, input: in}
	return e
}

// Replace continues with another state of the object. Variables that have a value keep
// it.
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
	switch {
	case e.missing != nil:
		return nil, e.missing
	case e.stopped != nil: // whatever the expression made of that
		return nil, e.failed(e.ctx, x, e.stopped)
	}
	if e.metHidden && (err != nil || types.IsUnknown(v)) {
		return nil, engine.ErrHidden
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
	return &LimitError{Expression: x.text, Limit: *tooManyElements()}
}

// evaluate runs a program and charges its cost. It may run in the middle of another
// expression, which uses a variable.
func (e *Evaluation) evaluate(x *Expression) (ref.Val, error) {
	if err := cmp.Or(e.ctx.Err(), e.stopped); err != nil {
		return nil, err
	}
	ctx, end := e.timed()
	defer end()
	program, err := x.plan.program()
	if err != nil {
		return nil, &EvaluationError{Expression: x.text, Err: err}
	}
	outer := e.rounds
	e.rounds = map[int64]rounds{}
	v, details, err := program.ContextEval(ctx, e.activation)
	e.rounds = outer
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

// timed returns a context that ends when one expression, and what it uses, has taken too long. The
// time that it waits for a server does not count.
func (e *Evaluation) timed() (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(e.ctx)
	taken := engine.Taken(e.ctx)
	until := taken() + maxDuration
	var timer *time.Timer
	started := make(chan struct{})
	timer = time.AfterFunc(maxDuration, func() {
		<-started
		if left := until - taken(); left > 0 {
			timer.Reset(left)
			return
		}
		cancel()
	})
	close(started)
	return ctx, func() { timer.Stop(); cancel() }
}

// pay charges the cost of an expression to the budget. The cost of the variables that it
// used first has been charged already.
func (e *Evaluation) pay(x *Expression, details *cel.EvalDetails) error {
	cost := details.ActualCost()
	if cost == nil {
		return nil
	}
	if *cost > math.MaxInt64 || int64(*cost) > e.left {
		return costError(x, e.cost)
	}
	e.left -= int64(*cost)
	return nil
}

// failed returns the error of an expression that has no value.
func (e *Evaluation) failed(ctx context.Context, x *Expression, err error) error {
	var limit *LimitError
	if errors.As(err, &limit) || errors.As(e.stopped, &limit) { // of a variable that it uses
		return limit
	}
	var exceeded *engine.LimitError
	if errors.As(e.stopped, &exceeded) {
		return e.stop(x, exceeded)
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded {
		return costError(x, Budget{Cost: celconfig.PerCallLimit, Of: "one expression"})
	}
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &LimitError{Expression: x.text, Limit: engine.LimitError{What: "seconds for one expression", Max: int(maxDuration / time.Second)}}
	}
	return &EvaluationError{Expression: x.text, Err: err}
}

// stop ends the evaluation at a limit that an expression reached.
func (e *Evaluation) stop(x *Expression, at *engine.LimitError) error {
	e.stopped = &LimitError{Expression: x.text, Limit: *at}
	return e.stopped
}

// costError is an expression that costs more than an API server grants.
func costError(x *Expression, granted Budget) error {
	return &LimitError{Expression: x.text, Limit: engine.LimitError{What: "units of CEL cost for " + granted.Of, Max: int(granted.Cost)}, Server: true}
}

// recoverAs turns a panic in a library into the error of the expression.
func recoverAs(x *Expression, err *error) {
	if p := recover(); p != nil {
		*err = &EvaluationError{Expression: x.text, Err: fmt.Errorf("internal error, please report it: %v", p)}
	}
}
