package expr

import (
	"slices"
	"strings"
)

// Simplified is an expression of the same value that says nothing twice: a boolean is not compared with true, and what
// follows has(a.b) takes a.b for there.
func Simplified(e Expr) Expr {
	if e == nil {
		return Bool(true)
	}
	return assuming(e, nil)
}

// assuming is an expression where conditions are known to hold.
func assuming(e Expr, known []Expr) Expr {
	if isKnown(known, e) {
		return Bool(true)
	}
	out := assumingParts(e, known)
	if e.kind != Dyn {
		return Typed(out, e.kind)
	}
	return out
}

func assumingParts(e Expr, known []Expr) Expr {
	switch e.op {
	case constant, variable:
		return e
	case chain:
		return assumingChain(e, known)
	case method:
		if field := e.args[0]; e.name == "orValue" && field.op == selection && field.kind == Dyn && field.optional {
			plain := *field
			plain.optional = false
			if isKnown(known, Call("has", &plain)) { // a.b for a.?b.orValue(c) where a.b is there
				return assuming(&plain, known)
			}
		}
		return assumingMethod(e, known)
	case choice:
		test := assuming(e.args[0], known)
		return Cond(test, assuming(e.args[1], append(slices.Clip(known), facts(test)...)), assuming(e.args[2], known))
	}
	e = e.Map(func(part Expr) Expr { return assuming(part, known) })
	switch {
	case e.is(prefix, "!"):
		return Not(e.args[0])
	case e.op == relation:
		return comparedWithBool(e)
	}
	return e
}

func isKnown(known []Expr, e Expr) bool {
	return slices.ContainsFunc(known, func(k Expr) bool { return Same(k, e) })
}

// assumingChain simplifies the operands of && and ||; those of && know that the ones before them hold.
func assumingChain(e Expr, known []Expr) Expr {
	var operands []Expr
	for _, operand := range e.args {
		operand = assuming(operand, known)
		operands = append(operands, operand)
		if e.name == "&&" {
			known = append(slices.Clip(known), facts(operand)...)
		}
	}
	return joined(e.name, operands)
}

// assumingMethod simplifies what a method is of and its arguments. A macro may give a name another meaning.
func assumingMethod(e Expr, known []Expr) Expr {
	inside := known
	if bound := e.args[1:]; len(bound) > 1 && bound[0].op == variable {
		inside = slices.DeleteFunc(slices.Clone(known), func(k Expr) bool { return Mentions(k, bound[0]) })
	}
	of := e.args[0]
	return e.Map(func(part Expr) Expr {
		if part == of {
			return assuming(part, known)
		}
		return assuming(part, inside)
	})
}

// facts are the conditions has(...) without which a condition does not hold.
func facts(condition Expr) []Expr {
	if condition.is(calling, "has") && !strings.Contains(condition.String(), "?") {
		return []Expr{condition}
	}
	var out []Expr
	if condition.op == chain && condition.name == "&&" {
		for _, operand := range condition.args {
			out = append(out, facts(operand)...)
		}
	}
	return out
}

// comparedWithBool is a boolean that is compared with a constant one.
func comparedWithBool(e Expr) Expr {
	for i, side := range e.args {
		value, constant := BoolOf(e.args[1-i])
		if (e.name != "==" && e.name != "!=") || !constant || !isBoolean(side) {
			continue
		}
		if value == (e.name == "==") {
			return side
		}
		return Not(side)
	}
	return e
}

// isBoolean reports whether an expression is never anything but a boolean.
func isBoolean(e Expr) bool {
	switch e.op {
	case chain, prefix, relation:
		return e.kind == Dyn && KindOf(e) == Boolean
	case calling, method:
		return e.kind == Dyn && results[e.name] == Boolean
	}
	return false
}
