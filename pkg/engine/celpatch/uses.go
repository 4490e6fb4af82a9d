package celpatch

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// usesOf lists what an expression names: variables, their fields, functions.
func usesOf(a *cel.Ast) map[string]bool {
	uses := map[string]bool{}
	ast.PreOrderVisit(a.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			uses[e.AsIdent()] = true
		case ast.CallKind:
			uses[e.AsCall().FunctionName()+"()"] = true
		case ast.SelectKind:
			if operand := e.AsSelect().Operand(); operand.Kind() == ast.IdentKind {
				uses[operand.AsIdent()+"."+e.AsSelect().FieldName()] = true
			}
		}
	}))
	return uses
}
