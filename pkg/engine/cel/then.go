package cel

import (
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// then is what becomes of the value of a step.
type then func(*interpreter.ExecutionFrame, ref.Val) ref.Val

// after returns a step that hands its value to do. Unless CEL charges the step as it is already, it stays a call, an
// attribute or a literal, each of which CEL charges in a way of its own.
func after(step interpreter.InterpretableV2, do then, charged bool) interpreter.InterpretableV2 {
	if charged {
		return stepThen{step, do}
	}
	switch step := step.(type) {
	case interpreter.InterpretableAttribute:
		return attributeThen{step, do}
	case interpreter.InterpretableCall:
		return callThen{step, do}
	case interpreter.InterpretableConstructor:
		return constructorThen{step, do}
	}
	return stepThen{step, do}
}

type (
	attributeThen struct {
		interpreter.InterpretableAttribute
		do then
	}
	callThen struct {
		interpreter.InterpretableCall
		do then
	}
	constructorThen struct {
		interpreter.InterpretableConstructor
		do then
	}
	stepThen struct {
		interpreter.InterpretableV2
		do then
	}
)

// Exec evaluates the step.
func (s attributeThen) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return s.do(frame, s.InterpretableAttribute.Exec(frame))
}

// Exec evaluates the step.
func (s callThen) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return s.do(frame, s.InterpretableCall.Exec(frame))
}

// Exec evaluates the step.
func (s constructorThen) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return s.do(frame, s.InterpretableConstructor.Exec(frame))
}

// Exec evaluates the step.
func (s stepThen) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return s.do(frame, s.InterpretableV2.Exec(frame))
}

// Eval evaluates the step.
func (s attributeThen) Eval(vars interpreter.Activation) ref.Val {
	return s.Exec(interpreter.AsFrame(vars))
}

// Eval evaluates the step.
func (s callThen) Eval(vars interpreter.Activation) ref.Val {
	return s.Exec(interpreter.AsFrame(vars))
}

// Eval evaluates the step.
func (s constructorThen) Eval(vars interpreter.Activation) ref.Val {
	return s.Exec(interpreter.AsFrame(vars))
}

// Eval evaluates the step.
func (s stepThen) Eval(vars interpreter.Activation) ref.Val {
	return s.Exec(interpreter.AsFrame(vars))
}
