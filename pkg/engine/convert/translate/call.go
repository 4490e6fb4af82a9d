package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// call translates a call of a function.
func (s *Scope) call(ast gojmespath.ASTNode, on *Value) Value {
	name, _ := ast.Value.(string)
	construct := "the function " + name
	f, ok := functions[name]
	switch {
	case !ok:
		panic(unsupported(construct, reasonNoFunction, ""))
	case f.refused != "":
		panic(unsupported(construct, f.refused, f.instead))
	case f.policiesOnly && s.options.Language != MutatingPolicy:
		panic(unsupported(construct, reasonOnlyPolicies, "write a MutatingPolicy"))
	case len(ast.Children) < len(f.params) || len(ast.Children) > len(f.params) && !f.variadic:
		panic(unsupported(construct, reasonFails, fmt.Sprintf("it takes %d arguments", len(f.params))))
	}
	c := &callOf{Scope: s, name: construct}
	for i, child := range ast.Children {
		if child.NodeType == gojmespath.ASTExpRef {
			c.refs = append(c.refs, child.Children[0])
			c.args = append(c.args, Value{})
			continue
		}
		arg := s.argument(child, on, name == "length")
		arg = arg.forgiving()
		if want := f.params[min(i, len(f.params)-1)]; want != 0 {
			arg = arg.needs(want)
			if arg.isNever() {
				panic(unsupported(construct, reasonFails, "an argument is never of the type that it needs"))
			}
			c.has = all(c.has, arg.has)
		}
		c.ok = all(c.ok, arg.lenient)
		c.args = append(c.args, arg)
	}
	if v, ok := c.folded(name); ok {
		return v
	}
	v := f.translate(c)
	if v.typ.can(isString|isList) && !f.decodes {
		v.typ = c.formed(v.typ)
	}
	if has := all(c.has, v.has); !c.covered && v.has != nil && !expr.Same(has, v.has) {
		v.has, v.opt = has, nil
	} else if !c.covered {
		v.has = has
	}
	v.lenient = all(c.ok, c.has, v.lenient)
	v.strict = v.lenient
	return v
}

// formed is the type of a result that is made of the arguments, and has no form that they have not.
func (c *callOf) formed(t Type) Type {
	if len(c.refs) > 0 || t.kinds == 0 {
		return t
	}
	form := PathSegment
	for _, arg := range c.args {
		if form = min(form, arg.typ.Form()); !arg.typ.is(isScalar | isList) {
			form = AnyText
		}
	}
	if t.form = max(t.form, form); t.elem != nil {
		elem := c.formed(*t.elem)
		t.elem = &elem
	}
	return t
}

// callOf is a call whose arguments are translated.
type callOf struct {
	*Scope
	name string // for errors
	args []Value
	refs []gojmespath.ASTNode // the arguments that are &expressions
	has  expr.Expr            // the condition that all arguments are there
	ok   expr.Expr            // and that none of them fails
	// covered is set where the result is there only if all arguments are.
	covered bool
}

// folded calls the function at once where all its arguments are constants.
func (c *callOf) folded(name string) (Value, bool) {
	if len(c.refs) > 0 {
		return Value{}, false
	}
	args := make([]string, len(c.args))
	for i, arg := range c.args {
		value, ok := arg.Literal()
		data, err := json.Marshal(value)
		if !ok || err != nil {
			return Value{}, false
		}
		args[i] = "`" + strings.ReplaceAll(string(data), "`", "\\`") + "`"
	}
	call, err := jmespath.Compile(name + "(" + strings.Join(args, ", ") + ")")
	if err != nil {
		return Value{}, false
	}
	value, err := call.Search(jmespath.New(time.Time{}, 0), nil)
	return Constant(value), err == nil
}

// constant is the text of a constant argument.
func (c *callOf) constant(i int) string {
	if value, ok := c.args[i].Literal(); ok {
		if text, isText := value.(string); isText {
			return text
		}
	}
	panic(unsupported(c.name, reasonDynamic, "its second argument has to be a constant"))
}

// integer is a whole number as a constant argument.
func (c *callOf) integer(i int, what string) int64 {
	value, _ := c.args[i].Literal()
	n, ok := value.(int64)
	if !ok {
		panic(unsupported(c.name, reasonDynamic, "give "+what+" as a constant"))
	}
	return n
}
