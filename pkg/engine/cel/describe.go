package cel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
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
func (s *Scope) Calls() (out []Call) {
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
			x.reads.add(path)
		}
		if len(path) == 3 && path[1] == "metadata" &&
			(path[0] == plugincel.ObjectVarName || path[0] == plugincel.OldObjectVarName) {
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

// judge finds out whether a condition is constant, or else which path it requires to change.
func (x *Expression) judge(e ast.Expr) {
	const always, never = "is true for every object", "is false for every object, so the policy never applies"
	junction, _ := callOf(e)
	field, constant := "", x.constant(e)
	switch junction {
	case operators.LogicalAnd:
		field = comparedTwice(operandsOf(e, junction), operators.Equals)
	case operators.LogicalOr:
		field = comparedTwice(operandsOf(e, junction), operators.NotEquals)
	}
	switch {
	case constant == types.True:
		x.slips = append(x.slips, always+": nothing in it depends on one")
	case constant == types.False:
		x.slips = append(x.slips, never+": nothing in it depends on one")
	case field == "":
		x.changing = changedField(e)
	case junction == operators.LogicalAnd:
		x.slips = append(x.slips, never+": "+field+" cannot have two values; || was probably meant")
	default:
		x.slips = append(x.slips, always+": "+field+" always differs from one of these values; && was probably meant")
	}
}

// constant returns the value of a condition that does not depend on the object; nil for others, and for those
// that call functions, which may be slow.
func (x *Expression) constant(e ast.Expr) ref.Val {
	function, args := callOf(e)
	itself := len(args) == 2 && pathOf(args[0]) != "" && pathOf(args[0]) == pathOf(args[1])
	switch {
	case itself && function == operators.Equals:
		return types.True
	case itself && function == operators.NotEquals:
		return types.False
	}
	for name := range x.uses {
		if function, isCall := strings.CutSuffix(name, "()"); isCall && !slices.Contains([]string{
			operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals, operators.NotEquals,
		}, function) {
			return nil
		}
	}
	v, _, _ := x.program.Eval(cel.NoVars()) // an error where a name has to have a value
	return v
}

// callOf returns the function of a call and its arguments without a target; empty for others.
func callOf(e ast.Expr) (function string, args []ast.Expr) {
	if e.Kind() != ast.CallKind {
		return "", nil
	}
	return e.AsCall().FunctionName(), e.AsCall().Args()
}

// operandsOf returns the operands of a junction that may be nested in itself; others are their only operand.
func operandsOf(e ast.Expr, junction string) []ast.Expr {
	if function, args := callOf(e); function == junction {
		return append(operandsOf(args[0], junction), operandsOf(args[1], junction)...)
	}
	return []ast.Expr{e}
}

// comparedTwice returns a field that is compared with different literals.
func comparedTwice(all []ast.Expr, comparison string) string {
	seen := map[string]ref.Val{}
	for _, e := range all {
		function, args := callOf(e)
		for i := range args {
			if function != comparison || pathOf(args[i]) == "" || args[1-i].Kind() != ast.LiteralKind {
				continue
			}
			field, value := pathOf(args[i]), args[1-i].AsLiteral()
			if before, known := seen[field]; known && before.Equal(value) != types.True {
				return field
			}
			seen[field] = value
		}
	}
	return ""
}

// changedField returns the field that a condition requires to change, such as object.data; it may be empty.
func changedField(e ast.Expr) string {
	for _, e := range operandsOf(e, operators.LogicalAnd) {
		function, args := callOf(e)
		differs := function == operators.NotEquals
		if function == operators.LogicalNot {
			function, args = callOf(args[0])
			differs = function == operators.Equals
		}
		for i := range args {
			field := pathOf(args[i])
			below, isObject := strings.CutPrefix(field, plugincel.ObjectVarName)
			if differs && isObject && pathOf(args[1-i]) == plugincel.OldObjectVarName+below {
				return field
			}
		}
	}
	return ""
}

// pathOf returns the path of a field, such as object.data; empty for other expressions.
func pathOf(e ast.Expr) string {
	if isHas(e) {
		return ""
	}
	return strings.Join(fieldsRead(e), ".")
}
