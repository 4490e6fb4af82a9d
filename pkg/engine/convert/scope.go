package convert

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
)

// scope is what the texts of a rule can mention: it turns them into expressions.
type scope struct {
	*translate.Scope
	always []string // places that the objects always have
	// needs collects the conditions without which the rule fails, as its variables are missing.
	needs *[]string
	loops []loop
}

// loop is a foreach around a patch.
type loop struct {
	list            place // whose pointer is empty where it is no list of the object
	variable, index string
	descending      bool // the last element comes first
	where           []string
	each            string // the expression of the list
}

// need is a condition without which the rule fails.
func (s *scope) need(e expr.Expr) {
	if e != nil {
		s.needText(flat(e))
	}
}

// needText is need for a condition that is written already.
func (s *scope) needText(c string) {
	for _, l := range slices.Backward(s.loops) {
		if where := condition(l.where); where != "true" {
			if !tokensAtTop(where, " || ", " ? ") && slices.Contains(splitTop(where, " && "), c) {
				return // it is what the loop asks for already
			}
			if loose(where) || tokensAtTop(where, " && ") {
				where = "(" + where + ")"
			}
			c = negate(where) + " || " + c
		}
		variables := l.variable
		if regexp.MustCompile(`\b` + l.index + `\b`).MatchString(c) {
			variables = l.index + ", " + l.variable
		}
		c = fmt.Sprintf("%s.all(%s, %s)", l.each, variables, c)
	}
	if !slices.Contains(*s.needs, c) {
		*s.needs = append(*s.needs, c)
	}
}

// text is an expression for a text with variables.
func (s *scope) text(template string) (expression, error) {
	x, err := s.template(template)
	if err != nil {
		return x, err
	}
	if x.when != "" {
		s.needText(x.when)
	}
	return x.asText()
}

// asText is the expression as a string.
func (x expression) asText() (expression, error) {
	switch {
	case x.fraction:
		return x, translate.FractionError()
	case !x.text:
		x.cel = "string(" + x.cel + ")"
	}
	return expression{cel: x.cel, text: true}, nil
}

// template is an expression for a text with variables, which may be of any type.
func (s *scope) template(template string) (expression, error) {
	v, err := s.Text(template)
	return s.expressionOf(template, v, err)
}

// value is template for a text at a place of the object.
func (s *scope) value(template string, at place) (expression, error) {
	v, err := s.At(at.path...).Text(template)
	return s.expressionOf(template, v, err)
}

func (s *scope) expressionOf(template string, v translate.Value, err error) (expression, error) {
	if err != nil {
		return expression{}, err
	}
	if lit, ok := v.Literal(); ok && lit == nil && strings.Contains(template, "!") {
		return expression{}, errors.New("the value is always null: JMESPath reads !a.b as (!a).b; write !(a.b)")
	}
	return s.expression(v)
}

// expression is the expression of a value that has to be there.
func (s *scope) expression(v translate.Value) (expression, error) {
	if lit, ok := v.Literal(); ok {
		switch lit := lit.(type) {
		case string:
			return expression{cel: quote(lit), text: true}, nil
		case nil:
			return expression{}, errors.New("the value is always null")
		}
	}
	s.need(v.Guard())
	out := expression{cel: flat(v.Plain()), text: expr.KindOf(v.Plain()) == expr.Text, fraction: v.MayHaveFraction()}
	if v.Has() != nil && (v.Guard() == nil || !expr.Same(v.Guard(), v.Has())) {
		out.when = flat(v.Has())
	}
	return out, nil
}

// conditions translates preconditions.
func (s *scope) conditions(raw any) ([]string, error) {
	all, err := s.Conditions(raw)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(all))
	for _, c := range all {
		if text := flat(c.Expr); text != "true" {
			out = append(out, text)
		}
	}
	return out, nil
}

// conditionsOfLoop translates the preconditions of the innermost loop. Where one fails for an element, the whole rule does.
func (s *scope) conditionsOfLoop(raw any) error {
	all, err := s.Conditions(raw)
	if err != nil {
		return err
	}
	l := &s.loops[len(s.loops)-1]
	for _, c := range all {
		s.need(c.Guard)
		if text := flat(c.Expr); text != "true" {
			l.where = append(l.where, text)
		}
	}
	return nil
}

// flat is an expression on one line.
func flat(e expr.Expr) string {
	var b strings.Builder
	for line := range strings.SplitSeq(expr.Format(e), "\n") {
		line = strings.TrimSpace(line)
		before := b.String()
		switch {
		case before == "":
		case strings.HasPrefix(line, "."), strings.HasSuffix(before, "("), strings.HasSuffix(before, "["), strings.HasSuffix(before, "{"):
		case strings.HasPrefix(line, ")"), strings.HasPrefix(line, "]"), strings.HasPrefix(line, "}"):
			if trimmed := strings.TrimSuffix(before, ","); trimmed != before {
				b.Reset()
				b.WriteString(trimmed)
			}
		default:
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

// sure reports whether a field is there in every object that a server takes.
func (s *scope) sure(at place, name string) bool {
	path := append(at.path[:len(at.path):len(at.path)], name)
	if n := len(path); n > 2 && path[n-2] == "[]" {
		return name == "name" && slices.Contains([]string{"containers", "initContainers", "ephemeralContainers", "volumes", "env", "volumeMounts"}, path[n-3])
	}
	place := strings.Join(path, ".")
	return len(path) == 1 && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) ||
		slices.ContainsFunc(s.always, func(sure string) bool { return strings.HasPrefix(sure+".", place+".") })
}

// variables are names for an element of a list and its index, which no other one has.
func (s *scope) variables(list place, used map[string]bool) (element, index string) {
	name := "e"
	if n := len(list.path); n > 0 {
		switch last := strings.ToLower(list.path[n-1]); {
		case strings.HasSuffix(last, "containers"):
			name = "c"
		case last == "volumes":
			name = "v"
		case last == "volumemounts":
			name = "m"
		case last == "ports":
			name = "p"
		}
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
