package translate

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Pattern translates an anchor's pattern for a scalar or for each element of a list: wildcards, `|`, `&`,
// `!`, comparisons and ranges of numbers, quantities and durations. It is false without a value. Other
// scalars are compared as strings, as in the anchors of mutate rules.
func (s *Scope) Pattern(v Value, want any) expr.Expr {
	text, ok := pattern.Text(want)
	if !ok {
		panic(unsupported("a pattern that is a map or a list", reasonNoFunction, "ask for its fields"))
	}
	if v.typ.is(isList) {
		return expr.And(v.has, s.every(v, func(item Value) expr.Expr { return scalarPattern(item, text) }))
	}
	if v.typ.kinds == 0 { // it may be a scalar or a list of scalars
		panic(unsupported("a pattern", reasonUnknownType, ""))
	}
	return scalarPattern(v, text)
}

// scalarPattern is the condition that a scalar, if present, matches a pattern.
func scalarPattern(v Value, text string) expr.Expr {
	return v.test(v.typ.kinds, func(e expr.Expr) expr.Expr { return alternatives(Expression(e, v.typ), text) })
}

func alternatives(v Value, text string) expr.Expr {
	var alternatives []expr.Expr
	for _, conjuncts := range pattern.Parse(text) {
		holds := expr.Bool(true)
		for _, terms := range conjuncts {
			one := expr.Bool(false)
			for _, t := range terms {
				one = expr.Or(one, compared(v, t.Operator, t.Text))
			}
			holds = expr.And(holds, one)
		}
		alternatives = append(alternatives, holds)
	}
	if same := equalsPattern(v, text); same != nil {
		alternatives = append(alternatives, same)
	}
	return expr.Or(alternatives...)
}

// equalsPattern is the condition that a string equals the pattern itself, which matches; nil if redundant or
// impossible.
func equalsPattern(v Value, text string) expr.Expr {
	_, _, _, isRange := pattern.ParseRange(text)
	if !v.typ.can(isString) || v.typ.quantity || !isRange && !strings.ContainsAny(text, "|<>") {
		return nil
	}
	if v.typ.label && len(validation.IsValidLabelValue(text)) > 0 {
		return nil
	}
	return expr.Equal(textOf(v), expr.String(text))
}

// compared compares as durations, quantities and strings; it holds if one of the comparisons does.
func compared(v Value, op, text string) expr.Expr {
	relation := map[string]string{"": "==", "!": "!="}[op]
	if relation == "" {
		relation = op
	}
	d, err := time.ParseDuration(text)
	isDurationText := err == nil
	q, err := jmespath.ParseQuantity(text)
	isQuantity := err == nil
	if v.typ.quantity && isQuantity && op != "" && op != "!" { // a server writes quantities as strings
		return quantityIs(expr.Call("string", v.plain), op, text, true)
	}
	if v.typ.is(isBool) {
		return boolPattern(v, op, text)
	}
	asWildcard := func() expr.Expr {
		holds := Wildcard(textOf(v), text)
		if !v.typ.is(isString) && !selector.HasWildcard(text) && !v.typ.is(isNumber) {
			holds = expr.Equal(stringOf(v), expr.String(text))
		}
		if op == "!" {
			return expr.Not(holds)
		}
		return holds
	}
	if !isDurationText && !isQuantity {
		if op != "" && op != "!" {
			return expr.Bool(false)
		}
		return asWildcard()
	}
	e := textOf(v)
	switch {
	case v.typ.is(isNumber) && isQuantity:
		return numberPattern(v, op, relation, q, text)
	case v.typ.is(isNumber) && (op == "" || op == "!"):
		return expr.Bool(op == "!")
	case v.typ.is(isNumber): // only 0 is also a duration
		return expr.And(expr.Equal(v.plain, expr.Int(0)), expr.Bool(holdsFor(op, 0, d.Seconds())))
	}
	var out []expr.Expr
	if isDurationText {
		if text == "0" {
			panic(unsupported("the pattern 0", "it is a number and a duration", "write 0s"))
		}
		out = append(out, durationIs(e, relation, d.Seconds()))
	}
	if isQuantity {
		out = append(out, quantityIs(e, relation, text, false))
	}
	if op == "" || op == "!" {
		out = append(out, asWildcard())
	}
	return expr.Or(out...)
}

// boolPattern compares true and false as strings.
func boolPattern(v Value, op, text string) expr.Expr {
	if op != "" && op != "!" {
		return expr.Bool(false)
	}
	yes, no := selector.MatchWildcard(text, "true"), selector.MatchWildcard(text, "false")
	if op == "!" {
		yes, no = !yes, !no
	}
	return asCondition(expr.Cond(asCondition(v.plain), expr.Bool(yes), expr.Bool(no)))
}

// numberPattern compares a number with a quantity in plain notation.
func numberPattern(v Value, op, relation string, q resource.Quantity, text string) expr.Expr {
	n := q.AsApproximateFloat64()
	// equal amounts may be written differently
	if op == "!" && strconv.FormatFloat(n, 'f', -1, 64) != text {
		return expr.Bool(true)
	}
	return expr.Binary(relation, v.plain, numberOf(n))
}
