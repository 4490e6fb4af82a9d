package translate

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// Condition is a condition for a rule to change anything.
type Condition struct {
	Expr expr.Expr
	// Guard is the condition without which Kyverno's rule fails; nil if it never fails.
	Guard expr.Expr
}

// Conditions translates preconditions: a map of any and all, or a list, which means all. Each member of all
// becomes a Condition, and any becomes one. If a missing variable makes Kyverno's rule fail, the condition
// does not hold. An error names the place.
func (s *Scope) Conditions(raw any) (out []Condition) {
	must(match.ParseConditions(raw))
	s.tests = true
	defer func() { s.tests = false }()
	switch v := raw.(type) {
	case []any:
		return s.allOf("", v)
	case map[string]any:
		if list, ok := v["any"].([]any); ok {
			out = append(out, anyOf(s.allOf("any", list)))
		}
		list, _ := v["all"].([]any)
		return append(out, s.allOf("all", list)...)
	}
	return nil
}

func (s *Scope) allOf(place string, list []any) []Condition {
	out := make([]Condition, len(list))
	for i, item := range list {
		c := &condition{Scope: s}
		if err := Try(func() { out[i].Expr, out[i].Guard = c.translate(item) }); err != nil {
			panic(Failure{fmt.Errorf("%s[%d]: %w", place, i, err)})
		}
	}
	return out
}

// anyOf joins the members of any. A failing member makes the rule fail unless an earlier one holds.
func anyOf(list []Condition) Condition {
	out := Condition{Expr: expr.Bool(false)}
	for _, c := range slices.Backward(list) {
		out.Expr = expr.And(c.Guard, expr.Or(c.Expr, out.Expr))
		out.Guard = allOrNil(c.Guard, some(c.Expr, out.Guard))
	}
	return out
}

type condition struct {
	*Scope
	operator match.Operator
}

// translate returns the condition, which is false if its key or value is null or missing, and the guard
// without which Kyverno's rule fails.
func (c *condition) translate(item any) (holds, guard expr.Expr) {
	fields := item.(map[string]any)
	name, _ := fields["operator"].(string)
	c.operator = must(match.ParseOperator(name))
	var sides [2]Value
	for i, name := range []string{"key", "value"} {
		sides[i] = c.Value(must(variables.Resolve(fields[name])))
	}
	key, value := sides[0], sides[1]
	there := value.strict
	if value.lit == nil && value.has != nil && !expr.Same(value.strict, value.has) {
		if !slices.Contains([]match.Operator{
			match.In, match.NotIn, match.AnyIn, match.AllIn,
			match.AnyNotIn, match.AllNotIn,
		}, c.operator) {
			panic(unsupported("a value that may be null", reasonDynamic, "give it a default"))
		}
		there = value.has // no value is In or NotIn null
	}
	guard = allOrNil(key.strict, value.strict)
	if key.isNever() {
		return expr.Bool(false), guard
	}
	return expr.And(there, c.compare(key, value)), guard
}
