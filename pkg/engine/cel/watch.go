package cel

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"github.com/google/cel-go/parser"
)

// watchTaint makes a program report to its taint what it evaluates. In CEL's units the
// program costs the same as without.
func watchTaint(a *cel.Ast) cel.ProgramOption {
	w := watcher{types: a.NativeRep().TypeMap(), seen: map[interpreter.Attribute]bool{}}
	return cel.CustomDecoratorV2(w.decorate)
}

// watcher wraps the steps of a plan, each when it is made.
type watcher struct {
	types map[int64]*types.Type
	// seen are the attributes that are watched: a plan hands one in again with each
	// field that it selects.
	seen map[interpreter.Attribute]bool
}

func (w watcher) decorate(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch step := step.(type) {
	case interpreter.InterpretableAttribute:
		if w.seen[step.Attr()] || accumulates(step.Attr()) {
			break
		}
		w.seen[step.Attr()] = true
		return &attribute{step}, nil
	case interpreter.InterpretableCall:
		if w.makesText(step) {
			return watchCall(step), nil
		}
	}
	return step, nil
}

// accumulates reports whether an attribute is the result of a comprehension while it
// grows. What goes into it has been seen.
func accumulates(a interpreter.Attribute) bool {
	named, ok := a.(interpreter.NamespacedAttribute)
	return ok && slices.ContainsFunc(named.CandidateVariableNames(), func(name string) bool {
		return name == parser.AccumulatorName || name == parser.HiddenAccumulatorName
	})
}

// makesText reports whether there can be text in what a call returns that is in none
// of its arguments. Lists that are joined hold what they held.
func (w watcher) makesText(call interpreter.InterpretableCall) bool {
	t := w.types[call.ID()]
	if t == nil {
		return true
	}
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.NullTypeKind,
		types.TimestampKind, types.DurationKind, types.TypeKind:
		return false
	case types.ListKind:
		return call.Function() != operators.Add
	}
	return true
}

func taintOf(frame *interpreter.ExecutionFrame) *taint {
	found, _ := frame.ResolveName(taintName)
	w, _ := found.(*taint)
	return w
}

// attribute is a value of the input: a variable, or a field of one.
type attribute struct {
	interpreter.InterpretableAttribute
}

// Exec evaluates it.
func (a *attribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := a.InterpretableAttribute.Exec(frame)
	if w := taintOf(frame); w != nil {
		w.meet(v)
		payVisits(frame, w)
	}
	return v
}

// Eval evaluates it.
func (a *attribute) Eval(vars interpreter.Activation) ref.Val {
	return a.Exec(interpreter.AsFrame(vars))
}

// watchedCall is a call of a function or an operator.
type watchedCall struct {
	interpreter.InterpretableCall
	args     []interpreter.InterpretableV2
	literals []any
}

func watchCall(of interpreter.InterpretableCall) *watchedCall {
	c := &watchedCall{InterpretableCall: of}
	for _, arg := range of.Args() {
		if paid, ok := arg.(opaque); ok {
			arg = paid.InterpretableV2
		}
		if literal, ok := arg.(interpreter.InterpretableConst); ok {
			value, _ := nativeValues(literal.Value())
			c.literals = append(c.literals, value)
		}
		c.args = append(c.args, opaque{arg})
	}
	if len(c.literals) == len(c.args) {
		c.args = of.Args() // the library may compute it once and for all
	}
	return c
}

// Args are the arguments.
func (c *watchedCall) Args() []interpreter.InterpretableV2 { return c.args }

// Exec evaluates the arguments and calls the function.
func (c *watchedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	w := taintOf(frame)
	if w == nil {
		return c.InterpretableCall.Exec(frame)
	}
	since := w.now()
	v := c.InterpretableCall.Exec(frame)
	w.made(since, c.literals, v)
	payVisits(frame, w)
	return v
}

// payVisits pays for the values that the taint has looked at since the last time.
func payVisits(frame *interpreter.ExecutionFrame, w *taint) {
	if e := evaluationOf(frame); e != nil {
		visited := w.visited
		w.visited = 0
		e.spend(e.budget.Spend(visited))
	}
}

// Eval evaluates the arguments and calls the function.
func (c *watchedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}
