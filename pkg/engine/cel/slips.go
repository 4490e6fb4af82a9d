package cel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// judge finds out whether a condition is constant, or else which path it requires to change.
func (x *Expression) judge(e ast.Expr) {
	const always, never = "is true for every object", "is false for every object, so the policy never applies"
	junction, _ := callOf(e)
	field, constant := "", x.constant(e)
	switch junction {
	case operators.LogicalAnd:
		field = comparedTwice(e, junction, operators.Equals, map[string]ref.Val{})
	case operators.LogicalOr:
		field = comparedTwice(e, junction, operators.NotEquals, map[string]ref.Val{})
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

// comparedTwice returns a field that operands of a junction compare with different literals.
func comparedTwice(e ast.Expr, junction, comparison string, seen map[string]ref.Val) string {
	switch function, args := callOf(e); function {
	case junction:
		field := comparedTwice(args[0], junction, comparison, seen)
		return cmp.Or(field, comparedTwice(args[1], junction, comparison, seen))
	case comparison:
		for i, operand := range args {
			field, literal := pathOf(operand), args[1-i]
			if field == "" || literal.Kind() != ast.LiteralKind {
				continue
			}
			value := literal.AsLiteral()
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
	function, args := callOf(e)
	switch function {
	case operators.LogicalAnd:
		return cmp.Or(changedField(args[0]), changedField(args[1]))
	case operators.LogicalNot:
		if function, args = callOf(args[0]); function != operators.Equals {
			return ""
		}
	case operators.NotEquals:
	default:
		return ""
	}
	for i := range args {
		field := pathOf(args[i])
		below, isObject := strings.CutPrefix(field, objectName)
		if isObject && pathOf(args[1-i]) == oldObjectName+below {
			return field
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
