package cel

import (
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Scope compiles the expressions of one policy, which share its variables. It
// belongs to one goroutine while it compiles, and serves many afterwards.
type Scope struct {
	environment *Environment
	variables   []variable
	compiled    []*Expression // what the policy evaluates besides its variables
	parts       sync.Map      // compiled parts of expressions, by their text, to explain conditions that are false
}

type variable struct {
	name       string
	declared   *cel.Type   // its type
	expression *Expression // nil where it does not compile
}

// NewScope returns a scope without variables.
func (e *Environment) NewScope() *Scope {
	return &Scope{environment: e}
}

// Variable compiles a variable. Expressions that are compiled later may use it as
// variables.NAME. The error is a *CompileError; the name is declared all the same, so
// that one mistake is reported once.
func (s *Scope) Variable(name, expression string) error {
	x, err := s.compile(s.environment.plain, expression, nil)
	declared := cel.DynType
	if err == nil {
		declared = declaredType(x.output)
	}
	s.variables = append(s.variables, variable{name: name, declared: declared, expression: x})
	return err
}

// variable returns the last one of a name, or nil.
func (s *Scope) variable(name string) *variable {
	for i := range slices.Backward(s.variables) {
		if s.variables[i].name == name {
			return &s.variables[i]
		}
	}
	return nil
}

// Condition compiles a boolean expression. The error is a
// *CompileError.
func (s *Scope) Condition(expression string) (*Expression, error) {
	return s.Compile(expression, cel.BoolType)
}

// Compile compiles an expression; its result must be of exactly one of the types,
// if any are given. The error is a *CompileError.
func (s *Scope) Compile(expression string, want ...*cel.Type) (*Expression, error) {
	return s.keep(s.compile(s.environment.plain, expression, want))
}

// keep makes an expression a part of the policy.
func (s *Scope) keep(x *Expression, err error) (*Expression, error) {
	if err == nil {
		s.compiled = append(s.compiled, x)
	}
	return x, err
}

// Join makes the expressions of another scope a part of the policy.
func (s *Scope) Join(other *Scope) { s.compiled = append(s.compiled, other.compiled...) }

// part compiles a part of an expression, once.
func (s *Scope) part(in *cel.Env, text string) (*Expression, error) {
	if known, ok := s.parts.Load(text); ok {
		return known.(*Expression), nil
	}
	x, err := s.compile(in, text, nil)
	if err != nil {
		return nil, err
	}
	s.parts.Store(text, x)
	return x, nil
}

// Expression is a compiled expression.
type Expression struct {
	text    string
	program cel.Program
	output  *cel.Type // what it evaluates to
	uses    []string  // sorted
	calls   []Call
	paths   []string
	reads   Reads
	writes  *engine.Writes // of a patch

	constant, truth bool   // of a condition, the value for every object
	clash           string // why it is constant, where it compares one field with several values
	changing        string // the field that a condition wants to be changed
	slips           []string
}

func (s *Scope) compile(in *cel.Env, text string, want []*cel.Type) (x *Expression, err error) {
	problem := func(message string) *CompileError {
		return &CompileError{Expression: text, Problems: []Problem{{Message: message}}}
	}
	defer func() {
		if p := recover(); p != nil { // such as for {?"k": m[?"k"]} where the type of m is not known
			x, err = nil, problem(fmt.Sprintf("makes the CEL library panic, which API servers use as well: %v", p))
		}
	}()
	s.environment.mu.Lock()
	defer s.environment.mu.Unlock()
	s.environment.scope = s
	ast, issues := in.Compile(text)
	if issues.Err() != nil {
		return nil, newCompileError(text, issues)
	}
	output := ast.OutputType()
	if len(want) > 0 && !slices.ContainsFunc(want, output.IsExactType) {
		return nil, problem(wrongType(output, want))
	}
	x = &Expression{text: text, output: output, reads: s.readsOf(ast), writes: writesOf(ast)}
	x.describe(ast.NativeRep().Expr())
	x.judge(ast)
	if x.program, err = in.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency)); err != nil {
		return nil, problem(err.Error())
	}
	return x, nil
}

// declaredType is the type that a variable has for the expressions that use it:
// that of its own expression, as far as a declaration can say it, because a
// literal may only hold elements of one type.
func declaredType(t *cel.Type) *cel.Type {
	switch t {
	case cel.AnyType, cel.BoolType, cel.BytesType, cel.DoubleType, cel.DurationType,
		cel.IntType, cel.NullType, cel.StringType, cel.TimestampType, cel.UintType:
		return t
	}
	switch parameters := t.Parameters(); {
	case t.Kind() == types.ListKind && len(parameters) == 1:
		return cel.ListType(declaredType(parameters[0]))
	case t.Kind() == types.MapKind && len(parameters) == 2:
		return cel.MapType(declaredType(parameters[0]), declaredType(parameters[1]))
	}
	return cel.DynType
}
