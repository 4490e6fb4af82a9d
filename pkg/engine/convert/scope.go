package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

// scope translates the strings of a rule to expressions.
type scope struct {
	*translate.Scope
	always []string // places that always exist
	// needs collects the conditions that variables exist, without which the rule fails.
	needs *[]expr.Expr
	loops []loop
}

// loop is an enclosing foreach.
type loop struct {
	list            place // its pointer is empty if it is not in the object
	variable, index string
	descending      bool // visit the last element first
	where           []expr.Expr
	each            expr.Expr // the expression of the list
}

// need adds a condition without which the rule fails.
func (s *scope) need(c expr.Expr) {
	if c == nil {
		return
	}
	for _, l := range slices.Backward(s.loops) {
		where := expr.And(l.where...)
		if expr.Contains(expr.Operands(where, "&&"), c) {
			return // the loop implies it
		}
		variables := []expr.Expr{expr.Name(l.variable)}
		if c = expr.Or(expr.Not(where), c); expr.Mentions(c, expr.Name(l.index)) {
			variables = []expr.Expr{expr.Name(l.index), expr.Name(l.variable)}
		}
		c = expr.Method(l.each, "all", append(variables, c)...)
	}
	if !expr.Contains(*s.needs, c) {
		*s.needs = append(*s.needs, c)
	}
}

// within requires a place to be a map, a list or a scalar if it exists. Without a schema, CEL and JSON
// patches fail on other values, which denies the request; Kyverno's rule fails and changes nothing.
func (s *scope) within(p place, kind string) {
	atom, ok := p.shape()
	kinds := map[string]bool{"map": atom.Map != nil, "list": atom.List != nil, "scalar": atom.Scalar != nil}
	delete(kinds, kind)
	known := !slices.Contains(slices.Collect(maps.Values(kinds)), true)
	is := expr.Equal(expr.Call("type", p.plain), expr.Name(kind))
	if kind == "scalar" {
		is = expr.And(expr.NotEqual(expr.Call("type", p.plain), expr.Name("map")),
			expr.NotEqual(expr.Call("type", p.plain), expr.Name("list")))
	}
	switch {
	case ok && known, len(p.path) == 0, p.path[0] == "metadata":
	case kind == "map" && len(p.path) == 1 && slices.Contains(translate.Conventions, p.path[0]):
	case kind == "scalar" && p.types[0].EmptyIsAbsent: // built-in kinds have this for ports
	case p.root != "object" && !slices.ContainsFunc(s.loops, func(l loop) bool { return l.variable == p.root }):
		panic(refuse(p, "the schema does not say that it is a %s; %s", kind, translate.GiveDefinition))
	default:
		s.need(expr.Or(expr.Not(p.has), is))
	}
}

// templateText is the expression of a string with variables.
func (s *scope) templateText(template string) expression {
	x := s.template(template)
	s.need(x.when)
	return x.asText()
}

// asText converts the expression to a string.
func (x expression) asText() expression {
	switch {
	case x.isText():
	case x.text != nil:
		x.cel = x.text()
	default:
		x.cel = expr.Call("string", x.cel)
	}
	return expression{cel: x.cel}
}

// template is the expression, of any type, of a string with variables.
func (s *scope) template(template string) expression { return s.expressionOf(template, s.Scope) }

// value is a template for a string at a place of the object.
func (s *scope) value(template string, at place) expression {
	return s.expressionOf(template, s.At(at.path...))
}

func (s *scope) expressionOf(template string, in *translate.Scope) expression {
	v := in.Text(template)
	if lit, ok := v.Literal(); ok && lit == nil && strings.Contains(template, "!") {
		panic(&Refusal{Reason: "the value is always null: JMESPath reads !a.b as (!a).b; write !(a.b)"})
	}
	return s.expression(v)
}

// expression requires the value to exist.
func (s *scope) expression(v translate.Value) expression {
	if lit, ok := v.Literal(); ok {
		switch lit := lit.(type) {
		case string:
			return expression{cel: expr.String(lit)}
		case nil:
			panic(&Refusal{Reason: "the value is always null"})
		}
	}
	s.need(v.Guard())
	out := expression{cel: v.Plain(), text: func() expr.Expr { return s.AsText(v) }}
	if v.Has() != nil && (v.Guard() == nil || !expr.Same(v.Guard(), v.Has())) {
		out.when = v.Has()
	}
	return out
}

func (s *scope) conditions(raw any) []expr.Expr {
	var out []expr.Expr
	for _, c := range s.Conditions(raw) {
		out = appendCondition(out, c.Expr)
	}
	return out
}

// conditionsOfLoop translates the preconditions of the innermost loop. An error for one element fails the
// whole rule.
func (s *scope) conditionsOfLoop(raw any) {
	l := &s.loops[len(s.loops)-1]
	for _, c := range s.Conditions(raw) {
		s.need(c.Guard)
		l.where = appendCondition(l.where, c.Expr)
	}
}

// appendCondition appends a condition that does not always hold.
func appendCondition(all []expr.Expr, c expr.Expr) []expr.Expr {
	if always, _ := expr.BoolOf(c); always {
		return all
	}
	return append(all, c)
}

// indexText is an index variable as a JSON pointer segment.
func indexText(index string) expr.Expr { return expr.Call("string", expr.Name(index)) }

// sure reports whether a field exists in every valid object.
func (s *scope) sure(at place, name string) bool {
	path := append(at.path[:len(at.path):len(at.path)], name)
	if n := len(path); n > 2 && path[n-2] == "[]" {
		return name == "name" && slices.Contains([]string{
			"containers", "initContainers",
			"ephemeralContainers", "volumes", "env", "volumeMounts",
		}, path[n-3])
	}
	place := strings.Join(path, ".")
	return len(path) == 1 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) ||
		slices.ContainsFunc(s.always, func(sure string) bool { return strings.HasPrefix(sure+".", place+".") })
}

// variables returns unused names for a list element and its index.
func (s *scope) variables(list place, used map[string]bool) (element, index string) {
	name := "e"
	if n := len(list.path); n > 0 {
		known := map[string]string{
			"containers": "c", "initContainers": "c", "ephemeralContainers": "c",
			"volumes": "v", "volumeMounts": "m", "ports": "p",
		}
		name = cmp.Or(known[list.path[n-1]], name)
	}
	taken := func(name string) bool {
		return used[name] || slices.ContainsFunc(s.loops, func(l loop) bool { return l.variable == name })
	}
	element = name
	for i := 2; taken(element); i++ {
		element = fmt.Sprint(name, i)
	}
	index = string(rune('i' + len(used) + len(s.loops)))
	used[element] = true
	return element, index
}
