package cel

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Uses reports whether the expression names a variable ("params"), a field of a variable
// ("request.userInfo"), or a function ("quantity()").
func (x *Expression) Uses(name string) bool {
	_, found := slices.BinarySearch(x.uses, name)
	return found
}

// Uses reports whether an expression of the policy names something, as Expression.Uses does.
func (s *Scope) Uses(name string) bool {
	uses := func(x *Expression) bool { return x.Uses(name) }
	return slices.ContainsFunc(s.variables, uses) || slices.ContainsFunc(s.compiled, uses)
}

// Call is a call that an expression makes on a variable.
type Call struct {
	On, Function string
	// Args are the arguments that are string literals; any other is empty.
	Args []string
}

// Calls returns the calls in the expressions of the policy.
func (s *Scope) Calls() []Call {
	var out []Call
	for _, x := range slices.Concat(s.compiled, s.variables) {
		out = append(out, x.calls...)
	}
	return out
}

// describe records the names, calls and writes of an expression, and its probable mistakes.
func (x *Expression) describe(root ast.Expr) {
	slip := func(text string) {
		if text != "" && !slices.Contains(x.slips, text) {
			x.slips = append(x.slips, text)
		}
	}
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			x.uses = append(x.uses, e.AsIdent())
		case ast.CallKind:
			call := e.AsCall()
			x.uses = append(x.uses, call.FunctionName()+"()")
			if call.IsMemberFunction() && call.Target().Kind() == ast.IdentKind {
				c := Call{On: call.Target().AsIdent(), Function: call.FunctionName()}
				for _, arg := range call.Args() {
					c.Args = append(c.Args, plainText(arg))
				}
				x.calls = append(x.calls, c)
			}
		case ast.SelectKind:
			operand, field := e.AsSelect().Operand(), e.AsSelect().FieldName()
			if operand.Kind() == ast.IdentKind {
				x.uses = append(x.uses, operand.AsIdent()+"."+field)
			}
			if of := pathOf(operand); of == "object.metadata" || of == "oldObject.metadata" {
				slip(policydecode.MetadataSlip(field))
			}
		case ast.StructKind:
			x.construct(e, slip)
		}
	}))
	slices.Sort(x.uses)
	x.uses, x.paths = slices.Compact(x.uses), engine.Distinct(x.paths)
}

// construct records the paths of a patch.
func (x *Expression) construct(e ast.Expr, slip func(string)) {
	add := func(path string) {
		if path != "" {
			x.paths = append(x.paths, path)
		}
	}
	if e.AsStruct().TypeName() == mutation.ObjectTypeName {
		eachLeaf(e, nil, true, func(path []string, _ bool) { add(policydecode.JoinNames(path)) })
	}
	for _, f := range e.AsStruct().Fields() {
		switch field := f.AsStructField(); {
		case e.AsStruct().TypeName() == mutation.ObjectTypeName+".metadata":
			slip(policydecode.MetadataSlip(field.Name()))
		case e.AsStruct().TypeName() == mutation.JSONPatchTypeName && field.Name() == "path":
			add(policydecode.JoinNames(policydecode.PointerNames(plainText(field.Value()))))
			slip(policydecode.PointerSlip(plainText(field.Value())))
		}
	}
}

func plainText(e ast.Expr) string {
	if e.Kind() != ast.LiteralKind {
		return ""
	}
	text, _ := e.AsLiteral().Value().(string)
	return text
}
