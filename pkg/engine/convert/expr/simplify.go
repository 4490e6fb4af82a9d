package expr

import (
	"regexp"
	"slices"
	"strings"
)

// simplified is an expression of the same value that says nothing twice: a boolean is not compared with true, and what
// follows has(a.b) takes a.b for there.
func simplified(e Expr) Expr { return assuming(e, nil) }

// assuming is an expression where conditions are known to hold.
func assuming(e Expr, known []string) Expr {
	if slices.Contains(known, flat(e)) {
		return Bool(true)
	}
	below := func(e Expr) Expr { return assuming(e, known) }
	switch e := e.(type) {
	case sel:
		e.of = below(e.of)
		return e
	case index:
		e.of, e.key = below(e.of), below(e.key)
		return e
	case call:
		return assumingCall(e, known)
	case binary:
		e.left, e.right = below(e.left), below(e.right)
		return comparedWithBool(e)
	case chain:
		return assumingChain(e, known)
	case not:
		return Not(below(e.of))
	case minus:
		return minus{below(e.of)}
	case typed:
		e.Expr = below(e.Expr)
		return e
	case cond:
		test := below(e.test)
		return Cond(test, assuming(e.then, append(slices.Clip(known), facts(test)...)), below(e.otherwise))
	case list:
		items := make([]Expr, len(e.items))
		for i, item := range e.items {
			items[i] = below(item)
		}
		return list{items}
	case object:
		e.entries = slices.Clone(e.entries)
		for i := range e.entries {
			if e.entries[i].Key != nil {
				e.entries[i].Key = below(e.entries[i].Key)
			}
			e.entries[i].Value = below(e.entries[i].Value)
		}
		return e
	}
	return e
}

// assumingChain simplifies the operands of && and ||; those of && know that the ones before them hold.
func assumingChain(e chain, known []string) Expr {
	var operands []Expr
	for _, operand := range e.operands {
		operand = assuming(operand, known)
		operands = append(operands, operand)
		if e.op == "&&" {
			known = append(slices.Clip(known), facts(operand)...)
		}
	}
	return joined(e.op, operands)
}

func assumingCall(e call, known []string) Expr {
	if e.of != nil {
		if plain, there := present(e, known); there {
			return assuming(plain, known)
		}
		e.of = assuming(e.of, known)
	}
	if e.of != nil && len(e.args) > 1 { // of a macro, which may give a name another meaning
		name, isName := e.args[0].(literal)
		bound := regexp.MustCompile(`\b` + regexp.QuoteMeta(flat(e.args[0])) + `\b`)
		if isName && name.kind == Dyn {
			known = slices.DeleteFunc(slices.Clone(known), bound.MatchString)
		}
	}
	e.args = slices.Clone(e.args)
	for i := range e.args {
		e.args[i] = assuming(e.args[i], known)
	}
	return e
}

// present is a.b for a.?b.orValue(c) where a.b is there.
func present(e call, known []string) (plain Expr, there bool) {
	field, ok := e.of.(sel)
	if e.name != "orValue" || !ok || !field.optional {
		return nil, false
	}
	field.optional = false
	return field, slices.Contains(known, "has("+flat(field)+")")
}

// facts are the conditions has(...) without which a condition does not hold.
func facts(condition Expr) []string {
	switch c := condition.(type) {
	case chain:
		if c.op != "&&" {
			return nil
		}
		var out []string
		for _, operand := range c.operands {
			out = append(out, facts(operand)...)
		}
		return out
	case call:
		if text := flat(c); c.of == nil && c.name == "has" && !strings.Contains(text, "?") {
			return []string{text}
		}
	}
	return nil
}

// comparedWithBool is a boolean that is compared with a constant one.
func comparedWithBool(e binary) Expr {
	for _, sides := range [][2]Expr{{e.left, e.right}, {e.right, e.left}} {
		value, constant := BoolOf(sides[1])
		if (e.op != "==" && e.op != "!=") || !constant || !isBoolean(sides[0]) {
			continue
		}
		if value == (e.op == "==") {
			return sides[0]
		}
		return Not(sides[0])
	}
	return e
}

// isBoolean reports whether an expression is never anything but a boolean.
func isBoolean(e Expr) bool {
	switch e := e.(type) {
	case chain, not:
		return true
	case call:
		return results[e.name] == Boolean
	case binary:
		return e.kind() == Boolean
	}
	return false
}
