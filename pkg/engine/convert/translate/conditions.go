package translate

import (
	"fmt"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// Condition is a condition that has to hold for a rule to change anything.
type Condition struct {
	Expr expr.Expr
	// Guard is the condition without which Kyverno's rule fails; nil for one that never does.
	Guard expr.Expr
}

// Conditions translates preconditions: a map of any and all, or a list, which is all. Each member of
// all is a Condition, and so is any as a whole. Where Kyverno's rule fails because a variable is missing, the
// condition does not hold. The error is an *UnsupportedError or one of the policy itself; it names the
// place.
func (s *Scope) Conditions(raw any) ([]Condition, error) {
	if _, err := match.ParseConditions(raw); err != nil {
		return nil, err
	}
	s.tests = true
	defer func() { s.tests = false }()
	var out []Condition
	add := func(place string, list []any) error {
		for i, item := range list {
			c := &condition{Scope: s}
			holds, guard, err := c.translate(item)
			if err != nil {
				return &ConditionError{Place: fmt.Sprintf("%s[%d]", place, i), Err: err}
			}
			out = append(out, Condition{Expr: holds, Guard: guard})
		}
		return nil
	}
	switch v := raw.(type) {
	case []any:
		return out, add("", v)
	case map[string]any:
		if list, ok := v["any"].([]any); ok {
			c, err := s.anyOf(list)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
		list, _ := v["all"].([]any)
		return out, add("all", list)
	}
	return out, nil
}

// ConditionError is a condition that cannot be translated.
type ConditionError struct {
	Place string
	Err   error
}

// Error names the place.
func (e *ConditionError) Error() string { return e.Place + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ConditionError) Unwrap() error { return e.Err }

// anyOf joins the members of any. A later one that fails makes the rule fail unless one before it holds.
func (s *Scope) anyOf(list []any) (Condition, error) {
	out := Condition{}
	holds, guards := make([]expr.Expr, len(list)), make([]expr.Expr, len(list))
	for i, item := range list {
		c := &condition{Scope: s}
		var err error
		if holds[i], guards[i], err = c.translate(item); err != nil {
			return out, &ConditionError{Place: fmt.Sprintf("any[%d]", i), Err: err}
		}
	}
	joined := expr.Bool(false)
	for i := range slices.Backward(list) {
		joined = expr.And(guards[i], expr.Or(holds[i], joined))
		out.Guard = all(guards[i], some(holds[i], out.Guard))
	}
	out.Expr = joined
	return out, nil
}

// condition is one entry that is translated.
type condition struct {
	*Scope
	operator match.Operator
}

// translate returns the condition, which is false where its key or its value is null or missing, and the
// condition without which Kyverno's rule fails.
func (c *condition) translate(item any) (holds, guard expr.Expr, err error) {
	fields := item.(map[string]any)
	name, _ := fields["operator"].(string)
	if c.operator, err = match.ParseOperator(name); err != nil {
		return nil, nil, err
	}
	var sides [2]Value
	for i, name := range []string{"key", "value"} {
		doc, err := variables.Resolve(fields[name])
		if err != nil {
			return nil, nil, err
		}
		if sides[i], err = c.Value(doc); err != nil {
			return nil, nil, err
		}
	}
	key, value := sides[0], sides[1]
	there := value.strict
	if value.lit == nil && value.has != nil && !expr.Same(value.strict, value.has) {
		if !slices.Contains([]match.Operator{match.In, match.NotIn, match.AnyIn, match.AllIn, match.AnyNotIn, match.AllNotIn}, c.operator) {
			return nil, nil, unsupported("a value that may be null", reasonDynamic, "give it a default")
		}
		there = value.has // nothing is in null, nor not in it
	}
	guard = all(key.strict, value.strict)
	if key.isNever() {
		return expr.Bool(false), guard, nil
	}
	holds, err = c.compare(key, value)
	return expr.And(there, holds), guard, err
}
