package cel

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// judge finds out whether a condition is constant, or else which path it requires to change.
func (x *Expression) judge(e ast.Expr) {
	const always, never = "is true for every object", "is false for every object, so the policy never applies"
	var v ref.Val
	err := errTakesTime
	if !slices.ContainsFunc(x.uses, takesTime) {
		v, _, err = x.program.Eval(map[string]any{}) // with no names defined
	}
	if function, args := callOf(e); len(args) == 2 && pathOf(args[0]) != "" &&
		pathOf(args[0]) == pathOf(args[1]) {
		switch function { // a field is compared with itself
		case operators.Equals:
			v, err = types.True, nil
		case operators.NotEquals:
			v, err = types.False, nil
		}
	}
	differs := comparedTwice(e, operators.LogicalOr, operators.NotEquals, map[string]ref.Val{})
	equals := comparedTwice(e, operators.LogicalAnd, operators.Equals, map[string]ref.Val{})
	switch {
	case err == nil && v == types.True:
		x.slips = append(x.slips, always+": nothing in it depends on one")
	case err == nil:
		x.slips = append(x.slips, never+": nothing in it depends on one")
	case equals != "":
		x.slips = append(x.slips, never+": "+equals+" cannot have two values; || was probably meant")
	case differs != "":
		x.slips = append(x.slips, always+": "+differs+" always differs from one of these values; && was probably meant")
	default:
		x.changing = changedField(e)
	}
}

var errTakesTime = errors.New("it calls more than operators")

// takesTime reports whether a name in Expression.uses is a function that may be slow.
func takesTime(name string) bool {
	function, isCall := strings.CutSuffix(name, "()")
	return isCall && !slices.Contains([]string{
		operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals, operators.NotEquals,
	}, function)
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
	switch function, args := callOf(e); function {
	case operators.LogicalAnd:
		return cmp.Or(changedField(args[0]), changedField(args[1]))
	case operators.LogicalNot:
		if function, operands := callOf(args[0]); function == operators.Equals {
			return sameBefore(operands)
		}
	case operators.NotEquals:
		return sameBefore(args)
	}
	return ""
}

// sameBefore returns the field that is compared with its old value.
func sameBefore(operands []ast.Expr) string {
	for i, e := range operands {
		path := pathOf(e)
		if rest, isObject := strings.CutPrefix(path, "object"); isObject && pathOf(operands[1-i]) == "oldObject"+rest {
			return path
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
