package cel

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Scope compiles the expressions of one policy, which share its variables. It
// belongs to one goroutine while it compiles, and serves many afterwards.
type Scope struct {
	environment *Environment
	variables   []*Expression // without a program where one does not compile
	compiled    []*Expression // what the policy evaluates besides its variables
}

// NewScope returns a scope without variables.
func (e *Environment) NewScope() *Scope {
	return &Scope{environment: e}
}

// Variable compiles a variable. Expressions that are compiled later may use it as
// variables.NAME. The error is a *CompileError; the name is declared all the same, so
// that one mistake is reported once.
func (s *Scope) Variable(name, expression string) error {
	_, err := s.variable(Source{Name: name, Text: expression})
	return err
}

func (s *Scope) variable(source Source) (*Expression, error) {
	x, err := s.compile(s.environment.plain, source, nil)
	if err != nil {
		x = &Expression{Source: source, output: cel.DynType}
	}
	x.output = declaredType(x.output)
	s.variables = append(s.variables, x)
	return x, err
}

// named returns the last variable of a name, or nil.
func (s *Scope) named(name string) *Expression {
	for _, x := range slices.Backward(s.variables) {
		if x.Name == name {
			return x
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
	return s.add(s.environment.plain, Source{Text: expression}, want...)
}

// add makes an expression a part of the policy.
func (s *Scope) add(in *cel.Env, source Source, want ...*cel.Type) (*Expression, error) {
	x, err := s.compile(in, source, want)
	if err == nil {
		s.compiled = append(s.compiled, x)
	}
	return x, err
}

// Join makes the expressions of another scope a part of the policy.
func (s *Scope) Join(other *Scope) { s.compiled = append(s.compiled, other.compiled...) }

// Expression is a compiled expression.
type Expression struct {
	Source
	program cel.Program
	output  *cel.Type // what it evaluates to
	atomics Atomics   // of an apply configuration
	uses    []string  // sorted
	calls   []Call
	paths   []string // the fields that a patch names
	reads   Reads
	writes  *engine.Writes // of a patch

	condition bool   // it is a match condition
	constant  string // what is wrong with a condition that is the same for every object
	changing  string // the field that a condition wants to be changed
	slips     []string
}

func (s *Scope) compile(in *cel.Env, source Source, want []*cel.Type) (x *Expression, err error) {
	text := source.Text
	defer func() {
		if p := recover(); p != nil { // such as for {?"k": m[?"k"]} where the type of m is not known
			x, err = nil, asWhole(text, fmt.Sprintf("makes the CEL library panic, which API servers use as well: %v", p))
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
		return nil, asWhole(text, wrongType(output, want))
	}
	x = &Expression{Source: source, output: output, reads: s.readsOf(ast), writes: writesOf(ast)}
	x.describe(ast.NativeRep().Expr())
	x.judge(ast)
	if x.program, err = in.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency)); err != nil {
		return nil, asWhole(text, err.Error())
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
