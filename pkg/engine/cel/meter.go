package cel

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// evaluationName is the name under which an activation hands out its evaluation. No
// expression can spell it.
const evaluationName = "#evaluation"

// functionsOf returns the functions of an environment, by the names under which a program
// looks them up: the ID of an overload, or the name of the function for all of them.
func functionsOf(env *cel.Env) (interpreter.Dispatcher, error) {
	out := interpreter.NewDispatcher()
	for name, f := range env.Functions() {
		bindings, err := f.Bindings()
		if err == nil {
			err = out.Add(bindings...)
		}
		if err != nil {
			return nil, fmt.Errorf("the CEL function %s: %w", name, err)
		}
	}
	return out, nil
}

// meter makes the functions of a program pay, from the budget of the rule, for what they
// read and write: it replaces the steps of a plan, each when it is made. CEL's cost does not
// bound that: it is known after a call, takes a regular expression for as long as its text,
// and most functions for free. In CEL's units the program costs the same as without. The
// maps are by the IDs of expressions.
type meter struct {
	known interpreter.Dispatcher
	types map[int64]*types.Type
	then  map[int64]then // of fields and items of literals, and of what macros go through
	// observed are the attributes whose steps the planner has made, and charges, already.
	observed map[int64]bool
	made     map[interpreter.Attribute]bool
	// optionals reports that the expression calls or or orValue, of which the library does not evaluate the argument in vain.
	optionals bool
}

func newMeter(known interpreter.Dispatcher, a *cel.Ast) *meter {
	m := &meter{known: known, types: a.NativeRep().TypeMap(), then: map[int64]then{}, observed: map[int64]bool{}, made: map[interpreter.Attribute]bool{}}
	ast.PostOrderVisit(ast.NavigateAST(a.NativeRep()), ast.NewExprVisitor(m.visit))
	return m
}

func (m *meter) visit(x ast.Expr) {
	switch x.Kind() {
	case ast.ListKind:
		for _, item := range x.AsList().Elements() {
			m.then[item.ID()] = hideMember
		}
	case ast.MapKind:
		for _, entry := range x.AsMap().Entries() {
			m.then[entry.AsMapEntry().Value().ID()] = hideMember
		}
	case ast.StructKind:
		for _, field := range x.AsStruct().Fields() {
			m.then[field.AsStructField().Value().ID()] = hideMember
		}
	case ast.ComprehensionKind:
		macro := x.(ast.NavigableExpr)
		m.then[rangeOf(x).ID()] = payRounds(rangeOf(x).ID(), around(macro), fixed(macro))
	case ast.SelectKind:
		m.observed[x.ID()] = true
	case ast.CallKind:
		switch x.AsCall().FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			m.observed[x.ID()] = true
		case "or", "orValue":
			m.optionals = true
		}
	}
}

func rangeOf(macro ast.Expr) ast.Expr { return macro.AsComprehension().IterRange() }

// around returns the IDs of what the macros go through in whose rounds another one stands.
func around(macro ast.NavigableExpr) []int64 {
	var out []int64
	for outer, inside := macro.Parent(); inside; outer, inside = outer.Parent() {
		if outer.Kind() == ast.ComprehensionKind && rangeOf(outer).ID() != macro.ID() {
			out = append(out, rangeOf(outer).ID())
		}
		macro = outer
	}
	return out
}

// fixed returns how many rounds the macros within a macro make in each of its rounds, as far as they go through literals that are
// computed once and for all, which cannot pay.
func fixed(macro ast.NavigableExpr) (rounds int) {
	for _, inner := range ast.MatchDescendants(macro, ast.KindMatcher(ast.ComprehensionKind)) {
		if inner.ID() == macro.ID() {
			continue
		}
		switch literal := rangeOf(inner); literal.Kind() {
		case ast.ListKind:
			rounds += literal.AsList().Size()
		case ast.MapKind:
			rounds += literal.AsMap().Size()
		}
	}
	return rounds
}

func (m *meter) decorate(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if isConstant(step) {
		return step, nil
	}
	if m.indexes(step) {
		return step, nil
	}
	step, err := m.metered(step)
	if do := m.then[step.ID()]; err == nil && do != nil {
		step = after(step, do, m.observed[step.ID()])
	}
	return step, err
}

// indexes reports whether a step is the computed index of an attribute, which the planner makes an attribute too, with the ID of
// the indexed one. That one has been made before, as what is indexed.
func (m *meter) indexes(step interpreter.InterpretableV2) bool {
	attribute, ok := step.(interpreter.InterpretableAttribute)
	if !ok {
		return false
	}
	made := m.made[attribute.Attr()]
	m.made[attribute.Attr()] = true
	return !made && m.observed[step.ID()]
}

func (m *meter) metered(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch step := step.(type) {
	case interpreter.InterpretableConstructor:
		return after(step, payBuilt, false), nil
	case interpreter.InterpretableCall:
		return m.call(step)
	}
	return step, nil
}

// call returns a call that pays, or the step itself where there is nothing to pay for.
func (m *meter) call(step interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	name := step.Function()
	args := step.Args()
	p, priced := prices[name]
	switch {
	case p.free, len(args) == 0:
		return step, nil
	case !priced && m.scalars(args):
		return step, nil
	case overloads.IsTypeConversionFunction(name) && isConstant(args[0]): // computed once and for all
		return step, nil
	case step.OverloadID() == overloads.InList && isConstant(args[1]): // becomes a look-up, which CEL has for free
		args = []interpreter.InterpretableV2{after(args[0], payRead, true), args[1]}
		return interpreter.NewCall(step.ID(), name, step.OverloadID(), args, func(values ...ref.Val) ref.Val { return contains(values[1], values[0]) }), nil
	}
	c := &call{InterpretableCall: step, args: args, shown: hide(args), price: p, text: m.types[step.ID()] == types.StringType}
	if !priced {
		c.price = linear(1)
	}
	if name == operators.Equals || name == operators.NotEquals {
		c.do = equality(name == operators.Equals)
		return c, nil
	}
	impl, known := m.known.FindOverload(step.OverloadID())
	if !known {
		impl, known = m.known.FindOverload(name)
	}
	if !known || impl.NonStrict {
		return step, nil
	}
	c.do = c.dispatch(impl)
	if name == operators.Add {
		c.do = adding(c.do)
	}
	return c, c.prepare()
}

// scalars reports whether the arguments of a call are known to be of types whose values
// are all of one size.
func (m *meter) scalars(args []interpreter.InterpretableV2) bool {
	for _, arg := range args {
		t := m.types[arg.ID()]
		if t == nil {
			return false
		}
		switch t.Kind() {
		case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.NullTypeKind,
			types.TimestampKind, types.DurationKind, types.TypeKind:
		default:
			return false
		}
	}
	return true
}

// call is a call of a function or an operator that pays before it is made. It takes the
// place of the step that the planner made.
type call struct {
	interpreter.InterpretableCall
	args  []interpreter.InterpretableV2
	shown []interpreter.InterpretableV2
	price price
	do    func(values []ref.Val) ref.Val
	text  bool // it returns a text
	// instructions are those of a regular expression that is constant, else 0.
	instructions int
}

// Args are the arguments.
func (c *call) Args() []interpreter.InterpretableV2 { return c.shown }

// Exec evaluates the arguments, pays and calls the function.
func (c *call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	values := make([]ref.Val, len(c.args))
	var unknown *types.Unknown
	for i, arg := range c.args {
		values[i] = arg.Exec(frame)
		if types.IsError(values[i]) {
			return values[i]
		}
		unknown, _ = types.MaybeMergeUnknowns(values[i], unknown)
	}
	e := evaluationOf(frame)
	if e != nil && e.activation.input.Hides {
		if v := c.hidden(e, values, unknown); v != nil {
			return v
		}
	}
	if unknown != nil {
		return unknown
	}
	if e == nil {
		return types.LabelErrNode(c.ID(), c.do(values))
	}
	e.spend(payTexts(e.budget, values))
	if c.price.regex {
		e.spend(c.payRegex(e.budget, values))
	}
	if c.price.before != nil {
		e.spend(c.price.before(e.budget, values))
	}
	v := c.do(values)
	if !c.price.built {
		e.spend(build(e.budget, v))
	}
	return types.LabelErrNode(c.ID(), v)
}

// Eval evaluates the arguments, pays and calls the function.
func (c *call) Eval(vars interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(vars)) }

// dispatch finds the implementation for the arguments, as the interpreter does.
func (c *call) dispatch(impl *functions.Overload) func([]ref.Val) ref.Val {
	var do func([]ref.Val) ref.Val
	switch {
	case len(c.args) == 1 && impl.Unary != nil:
		do = func(values []ref.Val) ref.Val { return impl.Unary(values[0]) }
	case len(c.args) == 2 && impl.Binary != nil:
		do = func(values []ref.Val) ref.Val { return impl.Binary(values[0], values[1]) }
	case impl.Function != nil:
		do = func(values []ref.Val) ref.Val { return impl.Function(values...) }
	}
	trait, name, overload := impl.OperandTrait, c.Function(), c.OverloadID()
	return func(values []ref.Val) ref.Val {
		switch first := values[0]; {
		case do != nil && (trait == 0 || first.Type().HasTrait(trait)):
			return do(values)
		case first.Type().HasTrait(traits.ReceiverType):
			return first.(traits.Receiver).Receive(name, overload, values[1:])
		}
		return types.NewErr("no such overload: %s", name)
	}
}

// equality is the operator ==, or !=.
func equality(equal bool) func([]ref.Val) ref.Val {
	return func(values []ref.Val) ref.Val {
		v := types.Equal(values[0], values[1])
		if b, ok := v.(types.Bool); ok && !equal {
			return !b
		}
		return v
	}
}

// adding joins lists into one that does not refer to them: the library's own goes down to
// the list of an item through all that were joined.
func adding(add func([]ref.Val) ref.Val) func([]ref.Val) ref.Val {
	return func(values []ref.Val) ref.Val {
		first, ok := values[0].(traits.Lister)
		second, alsoOK := values[1].(traits.Lister)
		_, grows := values[0].(traits.MutableLister)
		if !ok || !alsoOK || grows {
			return add(values)
		}
		joined := make([]ref.Val, 0, sizeOf(first)+sizeOf(second))
		for _, list := range []traits.Lister{first, second} {
			for it := list.Iterator(); it.HasNext() == types.True; {
				joined = append(joined, it.Next())
			}
		}
		return joinedList{types.NewRefValList(types.DefaultTypeAdapter, joined)}
	}
}

func contains(container, item ref.Val) ref.Val {
	if c, ok := container.(traits.Container); ok {
		return c.Contains(item)
	}
	return types.ValOrErr(container, "no such overload")
}

// payBuilt pays for a list, a map or an object that an expression writes.
func payBuilt(frame *interpreter.ExecutionFrame, v ref.Val) ref.Val {
	if e := evaluationOf(frame); e != nil {
		e.spend(build(e.budget, v))
	}
	return v
}

// payRead pays for an argument that is read.
func payRead(frame *interpreter.ExecutionFrame, v ref.Val) ref.Val {
	if e := evaluationOf(frame); e != nil {
		_, err := measure(e.budget, v)
		e.spend(err)
	}
	return v
}

// roundsPerStep is through how many rounds CEL looks in the time that looking at a value takes.
const roundsPerStep = 10

// rounds are those of a macro that goes through something, in the evaluation of an expression.
type rounds struct {
	begun  int // how often it was gone through
	within int // begun of the macro around it, when it was gone through the last time
	inside int // how often, in the rounds that this one has made
}

// payRounds pays for the rounds of a macro: in each of them, CEL's account of the cost looks through what it keeps of those
// before, and several times through what it keeps of those that the macros around it have made. Around are the IDs of what
// these go through, the innermost first.
func payRounds(id int64, around []int64, fixed int) then {
	return func(frame *interpreter.ExecutionFrame, v ref.Val) ref.Val {
		e := evaluationOf(frame)
		if e == nil {
			return v
		}
		r := e.rounds[id]
		if len(around) > 0 && r.within != e.rounds[around[0]].begun {
			r.within, r.inside = e.rounds[around[0]].begun, 0
		}
		r.begun++
		r.inside++
		e.rounds[id] = r
		n := sizeOf(v)
		kept := n + 8*r.inside
		for _, outer := range around {
			kept += 8 * e.rounds[outer].inside
		}
		e.spend(e.budget.Spend(n * kept / roundsPerStep * (1 + 8*fixed)))
		return v
	}
}

// hide hides which arguments are constants, so that the library puts no step of its own
// in the place of the call.
func hide(args []interpreter.InterpretableV2) []interpreter.InterpretableV2 {
	out := make([]interpreter.InterpretableV2, len(args))
	for i, arg := range args {
		out[i] = opaque{arg}
	}
	return out
}

// opaque is an argument of which only the value can be seen.
type opaque struct{ interpreter.InterpretableV2 }

// isConstant reports whether a step is computed once and for all: a literal, but for objects.
func isConstant(step interpreter.InterpretableV2) bool {
	if literal, ok := step.(interpreter.InterpretableConstructor); ok && (literal.Type() == types.ListType || literal.Type() == types.MapType) {
		return !slices.ContainsFunc(literal.InitVals(), func(item interpreter.InterpretableV2) bool { return !isConstant(item) })
	}
	_, constant := step.(interpreter.InterpretableConst)
	return constant
}

func evaluationOf(frame *interpreter.ExecutionFrame) *Evaluation {
	found, _ := frame.ResolveName(evaluationName)
	e, _ := found.(*Evaluation)
	return e
}

// spend ends the program where a payment fails. That is final: whatever the expression makes
// of the error, the rule has failed.
func (e *Evaluation) spend(err error) {
	if err == nil {
		return
	}
	if e.stopped == nil {
		e.stopped = err
	}
	panic(interpreter.EvalCancelledError{Message: e.stopped.Error(), Cause: interpreter.ContextCancelled})
}
