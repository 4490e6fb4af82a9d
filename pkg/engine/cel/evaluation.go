package cel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// Budget bounds the total cost of an Evaluation, in an API server's units. A single expression is also
// limited to one million.
type Budget int64

// The budgets of an API server.
const (
	MatchBudget    Budget = celconfig.RuntimeCELCostBudgetMatchConditions // all match conditions of a policy
	MutationBudget Budget = celconfig.RuntimeCELCostBudget                // a mutation and its variables
)

// Evaluation evaluates expressions of one policy on one object. It serves one goroutine and never modifies
// its input.
type Evaluation struct {
	ctx        context.Context
	scope      *Scope
	input      Input
	values     map[string]any // by names
	activation cel.Activation // of the values
	budget     Budget
	left       Budget
	ended      error // a limit that was exceeded, or what an expression needs and the run lacks
}

// Evaluate binds an input, without evaluating anything. The context is of a rule (limit.Rule).
func (s *Scope) Evaluate(ctx context.Context, in Input, b Budget) *Evaluation {
	e := &Evaluation{ctx: ctx, scope: s, input: in, budget: b, left: b}
	e.values = map[string]any{ // functions are called on first use
		plugincel.ObjectVarName: valueOf(in.Object), plugincel.OldObjectVarName: valueOf(in.OldObject),
		plugincel.RequestVarName: valueOf(in.RequestMap), plugincel.ParamsVarName: valueOf(in.Params),
		plugincel.NamespaceVarName: e.namespace, plugincel.VariableVarName: e.lazily,
		plugincel.AuthorizerVarName:                func() ref.Val { return e.authorizer(false) },
		plugincel.RequestResourceAuthorizerVarName: func() ref.Val { return e.authorizer(true) },
	}
	maps.Copy(e.values, in.Extra)
	e.activation, _ = cel.NewActivation(e.values) // which takes every map
	return e
}

// Replace continues with another state of the object. Evaluated variables keep their value.
func (e *Evaluation) Replace(object map[string]any) {
	e.input.Object, e.values[plugincel.ObjectVarName] = object, valueOf(object)
}

// Holds evaluates match conditions in order. The first false one, an *engine.SkippedError, takes precedence
// over earlier failures.
func (e *Evaluation) Holds(conditions []*Expression) error {
	var failures []error
	for _, x := range conditions {
		v, err := e.Value(x)
		switch {
		case err != nil && (e.ended != nil || e.ctx.Err() != nil): // all others would fail too
			return x.At(err)
		case err != nil:
			failures = append(failures, x.At(err))
		case v != types.True:
			return e.Unmet(x)
		}
	}
	return engine.JoinErrors(failures)
}

// Value evaluates an expression. The value may share data with the input. Functions of cel-go ignore the
// context: a slow one is left behind, and the Evaluation must not be used again.
func (e *Evaluation) Value(x *Expression) (ref.Val, error) {
	done := make(chan struct{})
	var v ref.Val
	var err error
	go func() {
		defer close(done)
		defer e.recoverAs(x, &err)
		if v, err = e.evaluate(x); e.ended != nil {
			v, err = nil, e.ended
		}
	}()
	for {
		select {
		case <-done:
			return v, err
		case <-e.ctx.Done():
		case <-time.After(limit.Left(e.ctx) + time.Millisecond):
		}
		var over *limit.Error
		switch err := e.ctx.Err(); {
		case errors.As(err, &over):
			return nil, stopped(x, over)
		case err != nil:
			return nil, err
		}
	}
}

// evaluate runs a program and charges its cost, possibly inside of another expression that uses a variable.
func (e *Evaluation) evaluate(x *Expression) (ref.Val, error) {
	if err := e.ctx.Err(); err != nil {
		return nil, err
	}
	v, details, err := x.program.ContextEval(e.ctx, e.activation)
	if cost := details.ActualCost(); cost != nil { // without that of variables, which have been charged
		e.left -= Budget(*cost)
	}
	left := maxElements
	var cancelled interpreter.EvalCancelledError
	switch {
	case e.ended != nil: // by a variable
	case e.left < 0:
		e.ended = costError(x, e.budget)
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		e.ended = costError(x, celconfig.PerCallLimit)
	case err != nil:
		return nil, cmp.Or(e.ctx.Err(), e.errorOf(x, err))
	}
	if subtractSize(v, &left); left < 0 && e.ended == nil {
		e.ended = stopped(x, &limit.Error{What: "elements in one value", Max: maxElements})
	}
	return v, e.ended
}

// stopped returns the error of an expression that exceeds a limit.
func stopped(x *Expression, over *limit.Error) error {
	return fmt.Errorf("expression %q was stopped: it %w", shorten(x.Text), over)
}

// costError returns the error of an expression that exceeds an API server's budget. It is not a limit.Error,
// which would leave a server's result unknown.
func costError(x *Expression, b Budget) error {
	of := map[Budget]string{
		celconfig.PerCallLimit: "one expression",
		MatchBudget:            "all match conditions of a policy", MutationBudget: "a mutation and its variables",
	}[b]
	return errors.New(stopped(x, &limit.Error{What: "units of CEL cost for " + of, Max: int(b)}).Error())
}

// recoverAs turns a library's panic into the error of the expression.
func (e *Evaluation) recoverAs(x *Expression, err *error) {
	if p := recover(); p != nil {
		*err = e.errorOf(x, fmt.Errorf("internal error, please report it: %v", p))
	}
}

func (e *Evaluation) errorOf(x *Expression, err error) error {
	if e.scope.environment.options.Unquoted {
		return err
	}
	return fmt.Errorf("expression %q resulted in error: %w", shorten(x.Text), err)
}

// maxElements bounds the values that one expression builds. CEL's cost does not: joining lists is nearly
// free, so a chain of variables that each join the previous one with itself exceeds any memory.
const maxElements = 100_000

// subtractSize subtracts the elements of a value from left, and stops below zero. Input data counts only by
// its length, since it cannot grow.
func subtractSize(v ref.Val, left *int) {
	*left--
	if isNative(v) {
		*left -= int(v.(traits.Sizer).Size().(types.Int))
	}
	for element := range elementsOf(v) {
		if *left < 0 {
			return
		}
		subtractSize(element, left)
	}
}

// elementsOf returns the values in a value that an expression has built; none of input data.
func elementsOf(v ref.Val) iter.Seq[ref.Val] {
	return func(yield func(ref.Val) bool) {
		if optional, ok := v.(*types.Optional); ok && optional.HasValue() {
			yield(optional.GetValue())
		}
		if operation, ok := v.(*mutation.JSONPatchVal); ok && operation.Val != nil {
			yield(operation.Val)
		}
		container, ok := v.(traits.Iterable)
		named, isMap := v.(traits.Mapper)
		// maps of other types are a policy's variables, which this would evaluate
		if !ok || isNative(v) || isMap && v.Type() != types.MapType {
			return
		}
		for it := container.Iterator(); it.HasNext() == types.True; {
			element := it.Next()
			if isMap {
				element = named.Get(element)
			}
			if !yield(element) {
				return
			}
		}
	}
}

// isNative reports whether a container is input data, not built by an expression. Only the library's own
// containers may be asked for their value: joined ones would join their parts recursively.
func isNative(v ref.Val) bool {
	switch reflect.TypeOf(v) {
	case reflect.TypeOf(types.DefaultTypeAdapter.NativeToValue([]any{})):
		_, native := v.Value().([]any)
		return native
	case reflect.TypeOf(types.DefaultTypeAdapter.NativeToValue(map[string]any{})):
		_, native := v.Value().(map[string]any)
		return native
	}
	return false
}
