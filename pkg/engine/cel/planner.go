package cel

import (
	"context"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// stepsName is the name under which the activation of a program hands out its steps. No expression can spell it.
const stepsName = "#steps"

// program is the part of a cel.Program that expressions are evaluated with.
type program interface {
	ContextEval(ctx context.Context, activation any) (ref.Val, *cel.EvalDetails, error)
}

// planner makes programs. They share what the library makes anew for each of its own, and what takes a hundred times the
// memory of an expression: all functions of the language, and the account of CEL's cost.
type planner struct {
	in        *cel.Env
	functions interpreter.Dispatcher
	planned   interpreter.Interpreter
	runner    cel.Program // evaluates the steps that its activation hands out
}

// newPlanner returns a planner for what has been checked in an environment. Functions are all that its expressions can call.
func newPlanner(in *cel.Env, functions interpreter.Dispatcher) (*planner, error) {
	constant, issues := in.Compile("true")
	if issues.Err() != nil {
		return nil, fmt.Errorf("set up the programs of CEL expressions: %w", issues.Err())
	}
	handedOut := func(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) { return stepsOf{step}, nil }
	runner, err := in.Program(constant, cel.InterruptCheckFrequency(celconfig.CheckFrequency), cel.CustomDecoratorV2(handedOut))
	if err != nil {
		return nil, fmt.Errorf("set up the programs of CEL expressions: %w", err)
	}
	adapter, provider := in.CELTypeAdapter(), in.CELTypeProvider()
	attributes := interpreter.NewAttributeFactory(in.Container, adapter, provider)
	return &planner{
		in: in, functions: functions, runner: runner,
		planned: interpreter.NewInterpreter(functions, in.Container, provider, adapter, attributes),
	}, nil
}

// program plans an expression that has been checked.
func (p *planner) program(a *cel.Ast) (program, error) {
	m := newMeter(p.functions, a)
	if m.optionals { // whose steps only the library's own programs have
		return p.in.Program(a, cel.InterruptCheckFrequency(celconfig.CheckFrequency), cel.CustomDecoratorV2(m.decorate))
	}
	steps, err := p.steps(a.NativeRep(), m.decorate)
	if err != nil {
		return nil, err
	}
	return planned{runner: p.runner, steps: steps}, nil
}

// steps are planned as in an API server (k8s.io/apiserver/pkg/cel/environment), but for regular expressions, which the meter compiles.
func (p *planner) steps(a *ast.AST, decorate interpreter.InterpretableDecoratorV2) (interpreter.InterpretableV2, error) {
	return p.planned.NewInterpretable(a, interpreter.CustomDecoratorV2(decorate), interpreter.InterruptableEval(), interpreter.Optimize(),
		interpreter.CostObserver(interpreter.CostTrackerFactory(noAccount)))
}

// noAccount is never called: the runner opens the account that the steps charge.
func noAccount() (*interpreter.CostTracker, error) { return interpreter.NewCostTracker(nil) }

// planned is a program of a planner.
type planned struct {
	runner cel.Program
	steps  interpreter.InterpretableV2
}

// ContextEval implements program.
func (p planned) ContextEval(ctx context.Context, activation any) (ref.Val, *cel.EvalDetails, error) {
	vars, err := cel.NewActivation(activation)
	if err != nil {
		return nil, nil, err
	}
	return p.runner.ContextEval(ctx, withSteps{Activation: vars, steps: p.steps})
}

// withSteps is an activation that hands out the steps of a program.
type withSteps struct {
	cel.Activation
	steps interpreter.InterpretableV2
}

// ResolveName returns the value of a name.
func (a withSteps) ResolveName(name string) (any, bool) {
	if name == stepsName {
		return a.steps, true
	}
	return a.Activation.ResolveName(name)
}

// stepsOf takes the steps from the activation, in place of a step.
type stepsOf struct{ interpreter.InterpretableV2 }

// Exec evaluates the steps of the activation.
func (s stepsOf) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	steps, _ := frame.ResolveName(stepsName)
	return steps.(interpreter.InterpretableV2).Exec(frame)
}

// Eval evaluates the steps of the activation.
func (s stepsOf) Eval(vars interpreter.Activation) ref.Val { return s.Exec(interpreter.AsFrame(vars)) }
