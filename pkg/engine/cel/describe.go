package cel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Uses reports whether the expression names a variable ("params"), a field of a variable
// ("request.userInfo"), or a function ("quantity()").
func (x *Expression) Uses(name string) bool { return x.uses[name] }

// Uses reports whether an expression of the policy names something, as Expression.Uses does.
func (s *Scope) Uses(name string) bool {
	return slices.ContainsFunc(s.compiled, func(x *Expression) bool { return x.Uses(name) })
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
	for _, x := range s.compiled {
		out = append(out, x.calls...)
	}
	return out
}

// describe records the names, calls, reads and paths of an expression, and its probable mistakes.
func (x *Expression) describe(root ast.NavigableExpr) {
	x.uses = map[string]bool{}
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			call := e.AsCall()
			x.uses[call.FunctionName()+"()"] = true
			if call.IsMemberFunction() && call.Target().Kind() == ast.IdentKind {
				c := Call{On: call.Target().AsIdent(), Function: call.FunctionName()}
				for _, arg := range call.Args() {
					c.Args = append(c.Args, plainText(arg))
				}
				x.calls = append(x.calls, c)
			}
		case ast.StructKind:
			x.construct(e)
		}
		path := fieldsRead(e)
		if len(path) == 0 {
			return
		}
		x.uses[strings.Join(path, ".")] = true
		if parent, ok := e.(ast.NavigableExpr).Parent(); !ok || len(fieldsRead(parent)) == 0 { // a whole path
			x.reads.Add(readsOf(path))
		}
		if len(path) == 3 && (path[0] == objectName || path[0] == oldObjectName) && path[1] == "metadata" {
			x.slips = append(x.slips, policydecode.MetadataSlip(path[2]))
		}
	}))
	known := func(all []string) []string {
		return slices.DeleteFunc(engine.Distinct(all), func(text string) bool { return text == "" })
	}
	x.paths, x.slips = known(x.paths), known(x.slips)
}

// construct records the paths of a patch.
func (x *Expression) construct(e ast.Expr) {
	add := func(path []string, _ bool) { x.paths = append(x.paths, policydecode.JoinNames(path)) }
	kind := e.AsStruct().TypeName()
	if kind == mutation.ObjectTypeName {
		eachLeaf(e, nil, true, add)
	}
	for _, field := range membersOf(e, false) {
		switch {
		case kind == mutation.ObjectTypeName+".metadata":
			x.slips = append(x.slips, policydecode.MetadataSlip(field.name))
		case kind == mutation.JSONPatchTypeName && field.name == "path":
			pointer := plainText(field.value)
			add(policydecode.PointerNames(pointer), false)
			x.slips = append(x.slips, policydecode.PointerSlip(pointer))
		}
	}
}

func plainText(e ast.Expr) string {
	if e == nil || e.Kind() != ast.LiteralKind {
		return ""
	}
	text, _ := e.AsLiteral().Value().(string)
	return text
}
