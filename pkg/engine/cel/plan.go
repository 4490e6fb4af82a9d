package cel

import (
	"fmt"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	exprpb "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
	"google.golang.org/protobuf/proto"
)

// maxPlans is how many programs an environment keeps. Each takes ten times the memory of its expression.
const maxPlans = 1000

// onObject is how often an expression is evaluated on one object: the second time on what the rules have made of it.
const onObject = 2

// plan makes the program of an expression. It is safe for concurrent use.
type plan struct {
	environment *Environment
	planner     *planner
	checked     []byte // the expression, which as a tree takes thirty times as much
	uses        atomic.Int32
	kept        atomic.Pointer[program]
}

// newPlan keeps an expression that has been checked. It fails as far as the program cannot be made.
func (e *Environment) newPlan(by *planner, a *cel.Ast) (*plan, error) {
	checked, err := cel.AstToCheckedExpr(a)
	if err != nil {
		return nil, err
	}
	checked.SourceInfo = nil // the places in the text, which only its errors need
	p := &plan{environment: e, planner: by}
	if p.checked, err = proto.Marshal(checked); err != nil {
		return nil, err
	}
	if mayFail(a) {
		_, err = p.make()
	}
	return p, err
}

// program returns the program. The first two calls make one that is not kept, since most expressions of many policies
// are evaluated on one object, and on what they make of it; the third makes the one that all others return, or, beyond
// maxPlans, each call a new one, which takes longer than evaluating it.
func (p *plan) program() (program, error) {
	if kept := p.kept.Load(); kept != nil {
		return *kept, nil
	}
	program, err := p.make()
	if err == nil && p.uses.Add(1) > onObject && p.environment.plans.Add(1) <= maxPlans {
		p.kept.Store(&program)
	}
	return program, err
}

func (p *plan) make() (program, error) {
	var checked exprpb.CheckedExpr
	if err := proto.Unmarshal(p.checked, &checked); err != nil {
		return nil, fmt.Errorf("unpack a CEL expression: %w", err)
	}
	a, err := cel.CheckedExprToAstWithSource(&checked, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack a CEL expression: %w", err)
	}
	return p.planner.program(a)
}

// mayFail reports whether a program may refuse an expression that has been checked: one in which it computes a
// part beforehand (a regular expression, a conversion, a list that is searched, a list or a map that is an index), or with optional members.
func mayFail(a *cel.Ast) bool {
	found := false
	ast.PreOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			name, args := e.AsCall().FunctionName(), e.AsCall().Args()
			found = found || prices[name].regex || overloads.IsTypeConversionFunction(name) || name == operators.In
			found = found || (name == operators.Index || name == operators.OptIndex) && (args[1].Kind() == ast.ListKind || args[1].Kind() == ast.MapKind)
		case ast.ListKind:
			found = found || len(e.AsList().OptionalIndices()) > 0
		case ast.MapKind:
			for _, entry := range e.AsMap().Entries() {
				found = found || entry.AsMapEntry().IsOptional()
			}
		case ast.StructKind:
			for _, field := range e.AsStruct().Fields() {
				found = found || field.AsStructField().IsOptional()
			}
		}
	}))
	return found
}
