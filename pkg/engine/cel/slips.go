package cel

import (
	"cmp"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// lint warns of fields that no metadata has, of JSON pointers that cannot be meant, and of a match condition
// that is the same for every object. It notes a condition that is about what changes.
func (x *Expression) lint() {
	for _, slip := range x.slips {
		x.Lint("%s", slip)
	}
	if x.changing != "" {
		x.Note("the policy acts on updates that change %s: what exists is evaluated unchanged, so nothing is shown", x.changing)
	}
}

// judge finds out whether a condition is constant, or else which path it wants to be changed.
func (x *Expression) judge(e ast.Expr) {
	value, known := truth(e)
	always, never := comparedTwice(e, operators.LogicalOr, operators.NotEquals, map[string]ref.Val{}), comparedTwice(e, operators.LogicalAnd, operators.Equals, map[string]ref.Val{})
	switch {
	case known && value:
		x.slips = append(x.slips, "is true for every object: nothing in it depends on one")
	case known:
		x.slips = append(x.slips, "is false for every object, so the policy never applies: nothing in it depends on one")
	case never != "":
		x.slips = append(x.slips, "is false for every object, so the policy never applies: "+never+" cannot have two values; || was probably meant")
	case always != "":
		x.slips = append(x.slips, "is true for every object: "+always+" always differs from one of these values; && was probably meant")
	default:
		x.changing = changedField(e)
	}
}

// truth returns the value of an expression that is the same whatever the object is, as far as its form tells.
func truth(e ast.Expr) (value, known bool) {
	if e.Kind() == ast.LiteralKind {
		value, known = e.AsLiteral().Value().(bool)
		return value, known
	}
	switch function, args := callOf(e); function {
	case operators.LogicalNot:
		value, known = truth(args[0])
		return !value, known
	case operators.LogicalAnd, operators.LogicalOr:
		decides := function == operators.LogicalOr
		left, leftKnown := truth(args[0])
		right, rightKnown := truth(args[1])
		if leftKnown && left == decides || rightKnown && right == decides {
			return decides, true
		}
		return !decides, leftKnown && rightKnown
	case operators.Equals, operators.NotEquals:
		same, known := areEqual(args[0], args[1])
		return same == (function == operators.Equals), known
	}
	return false, false
}

// callOf returns the function of a call, and its arguments without a target; empty for what is none.
func callOf(e ast.Expr) (function string, args []ast.Expr) {
	if e.Kind() != ast.CallKind {
		return "", nil
	}
	return e.AsCall().FunctionName(), e.AsCall().Args()
}

// comparedTwice returns a field that the operands of a junction compare with different literals.
func comparedTwice(e ast.Expr, junction, comparison string, seen map[string]ref.Val) string {
	switch function, args := callOf(e); function {
	case junction:
		return cmp.Or(comparedTwice(args[0], junction, comparison, seen), comparedTwice(args[1], junction, comparison, seen))
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

// areEqual reports whether two operands are equal, where that is known: two literals, or the same field twice.
func areEqual(a, b ast.Expr) (same, known bool) {
	if a.Kind() == ast.LiteralKind && b.Kind() == ast.LiteralKind {
		return a.AsLiteral().Equal(b.AsLiteral()) == types.True, true
	}
	path := pathOf(a)
	return true, path != "" && path == pathOf(b)
}

// changedField returns the field whose change a condition wants, such as object.data; empty if it wants none.
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

// sameBefore returns the field that is compared with what it was before.
func sameBefore(operands []ast.Expr) string {
	for i, e := range operands {
		path := pathOf(e)
		if rest, isObject := strings.CutPrefix(path, "object"); isObject && pathOf(operands[1-i]) == "oldObject"+rest {
			return path
		}
	}
	return ""
}

// pathOf is the path of a field, such as object.data; empty for any other expression.
func pathOf(e ast.Expr) string {
	if isHas(e) {
		return ""
	}
	return strings.Join(fieldsRead(e), ".")
}
