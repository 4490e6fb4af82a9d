package cel

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Scope compiles the expressions of one policy, which share its variables. It
// belongs to one goroutine while it compiles, and serves many afterwards.
type Scope struct {
	environment *Environment
	variables   []variable
	places      map[string]int // in variables, by name, where there are more than few
	parts       sync.Map       // compiled parts of expressions, by their text, to explain conditions that are false
}

type variable struct {
	name       string
	declared   *apiservercel.DeclType // its type
	expression *Expression            // nil where it does not compile
}

// few is how many variables are looked through for a name.
const few = 8

// NewScope returns a scope without variables.
func (e *Environment) NewScope() *Scope {
	return &Scope{environment: e}
}

func noVariables() *apiservercel.DeclType {
	return apiservercel.NewObjectType(variablesTypeName, map[string]*apiservercel.DeclField{})
}

// Variable compiles a variable. Expressions that are compiled later may use it as
// variables.NAME. The error is a *CompileError; the name is declared all the same, so
// that one mistake is reported once.
func (s *Scope) Variable(name, expression string) error {
	x, err := s.Compile(expression)
	if err != nil {
		s.declare(name, cel.DynType, nil)
		return err
	}
	s.declare(name, x.output, x)
	return nil
}

// LintVariable warns as Expression.Lint does of a variable.
func (s *Scope) LintVariable(name string, n policydecode.Node) {
	for _, v := range s.variables {
		if v.name == name && v.expression != nil {
			v.expression.Lint(n)
		}
	}
}

// HasVariables reports whether expressions may use a variable.
func (s *Scope) HasVariables() bool { return len(s.variables) > 0 }

func (s *Scope) declare(name string, t *cel.Type, x *Expression) {
	s.variables = append(s.variables, variable{name: name, declared: declaredType(t), expression: x})
	switch n := len(s.variables); {
	case s.places != nil:
		s.places[name] = n - 1
	case n > few:
		s.places = map[string]int{}
		for i, v := range s.variables {
			s.places[v.name] = i
		}
	}
}

// variable returns the last one of a name, or nil.
func (s *Scope) variable(name string) *variable {
	if s.places != nil {
		if i, known := s.places[name]; known {
			return &s.variables[i]
		}
		return nil
	}
	for i := range slices.Backward(s.variables) {
		if s.variables[i].name == name {
			return &s.variables[i]
		}
	}
	return nil
}

// namedIn returns the variables that an expression may name: what all of them are declared for takes time by their number.
func (s *Scope) namedIn(text string) map[string]*apiservercel.DeclField {
	if len(s.variables) == 0 {
		return nil
	}
	named := map[string]*apiservercel.DeclField{}
	for name := range wordsIn(text) {
		for _, name := range []string{name, "__" + name + "__"} { // which is that of a keyword
			if v := s.variable(name); v != nil {
				named[name] = apiservercel.NewDeclField(name, v.declared, true, nil, nil)
			}
		}
	}
	return named
}

// wordsIn yields all that may be a name in an expression, also in its texts and comments, and what stands in quotes for names.
func wordsIn(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		isPart := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
		for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return !isPart(r) }) {
			if !yield(name) {
				return
			}
		}
		if !strings.Contains(text, "`") {
			return
		}
		for name := range strings.SplitSeq(text, "`") {
			if !yield(name) {
				return
			}
		}
	}
}

// Condition compiles a boolean expression. The error is a
// *CompileError.
func (s *Scope) Condition(expression string) (*Expression, error) {
	return s.Compile(expression, cel.BoolType)
}

// Compile compiles an expression; its result must be of exactly one of the types,
// if any are given. The error is a *CompileError.
func (s *Scope) Compile(expression string, want ...*cel.Type) (*Expression, error) {
	return s.compile(s.environment.plain, expression, want)
}

// part compiles a part of an expression, once.
func (s *Scope) part(text string) (*Expression, error) {
	if known, ok := s.parts.Load(text); ok {
		return known.(*Expression), nil
	}
	x, err := s.Compile(text)
	if err != nil {
		return nil, err
	}
	s.parts.Store(text, x)
	return x, nil
}

// Expression is a compiled expression.
type Expression struct {
	text   string
	plan   *plan
	output *cel.Type // what it evaluates to
	uses   []string  // sorted
	calls  []Call
	paths  []string

	constant, truth bool   // of a condition, the value for every object
	clash           string // why it is constant, where it compares one field with several values
	changing        string // the field that a condition wants to be changed
	slips           []string
}

func (s *Scope) compile(in *declarations, text string, want []*cel.Type) (x *Expression, err error) {
	defer func() {
		if p := recover(); p != nil { // such as for {?"k": m[?"k"]} where the type of m is not known
			message := fmt.Sprintf("makes the CEL library panic, which API servers use as well: %v", p)
			x, err = nil, &CompileError{Expression: text, Problems: []Problem{{Message: message}}}
		}
	}()
	checker, err := in.checker(s.namedIn(text))
	if err != nil {
		return nil, &CompileError{Expression: text, Problems: []Problem{{Message: err.Error()}}}
	}
	ast, issues := checker.Compile(text)
	if issues.Err() != nil {
		return nil, newCompileError(text, issues)
	}
	output := oneOf(ast.OutputType(), want)
	if output == nil {
		return nil, &CompileError{Expression: text, Problems: []Problem{{Message: wrongType(ast.OutputType(), want)}}}
	}
	x = &Expression{text: text, output: output, uses: usesOf(ast), calls: callsIn(ast), paths: pathsIn(ast)}
	x.judge(ast)
	if x.plan, err = s.environment.newPlan(in.planner, ast); err != nil {
		return nil, &CompileError{Expression: text, Problems: []Problem{{Message: err.Error()}}}
	}
	return x, nil
}

// oneOf returns the type that is wanted, which all expressions of it share; nil if it is not.
func oneOf(t *cel.Type, want []*cel.Type) *cel.Type {
	for _, w := range want {
		if t.IsExactType(w) {
			return w
		}
	}
	if len(want) == 0 {
		return t
	}
	return nil
}

// declaredType is the type that a variable has for the expressions that use it:
// that of its own expression, as far as a declaration can say it, because a
// literal may only hold elements of one type.
func declaredType(t *cel.Type) *apiservercel.DeclType {
	for _, scalar := range []*apiservercel.DeclType{
		apiservercel.AnyType, apiservercel.BoolType, apiservercel.BytesType, apiservercel.DoubleType, apiservercel.DurationType,
		apiservercel.IntType, apiservercel.NullType, apiservercel.StringType, apiservercel.TimestampType, apiservercel.UintType,
	} {
		if scalar.CelType() == t {
			return scalar
		}
	}
	if !t.HasTrait(traits.ContainerType) || !t.HasTrait(traits.IndexerType) {
		return apiservercel.DynType
	}
	switch parameters := t.Parameters(); len(parameters) {
	case 1:
		return apiservercel.NewListType(declaredType(parameters[0]), -1)
	case 2:
		return apiservercel.NewMapType(declaredType(parameters[0]), declaredType(parameters[1]), -1)
	}
	return apiservercel.DynType
}
