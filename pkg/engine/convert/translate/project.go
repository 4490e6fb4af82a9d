package translate

import (
	"slices"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// project translates [*], .*, [?...] and [], and the rest of the expression for each element.
func (s *Scope) project(ast gojmespath.ASTNode, on *Value) Value {
	if ast.NodeType == gojmespath.ASTSlice {
		return s.slice(ast, on)
	}
	if on == nil && len(ast.Children) == 0 {
		panic(unsupported("a projection of the whole context", reasonFails, ""))
	}
	list := s.child(ast, 0, on)
	switch ast.NodeType {
	case gojmespath.ASTProjection:
		list.strict = list.lenient
	case gojmespath.ASTValueProjection:
		list = s.values(swallowed(list))
	case gojmespath.ASTFilterProjection:
		list = s.filter(ast.Children[2], swallowed(list))
	case gojmespath.ASTFlatten:
		return s.flatten(swallowed(list))
	default:
		panic(unsupported("the expression", "its construct is not known", ""))
	}
	if ast.Children[1].NodeType == gojmespath.ASTIdentity && !list.nulls {
		return list
	}
	return s.mapped(list, func(element Value) Value { return s.lenientOn(ast.Children[1], element) })
}

func (s *Scope) lenientOn(ast gojmespath.ASTNode, on Value) Value {
	return s.eval(ast, &on).forgiving()
}

// swallowed replaces failure by null.
func swallowed(v Value) Value {
	v.has = allOrNil(v.lenient, v.has)
	v.strict, v.lenient = nil, nil
	return v
}

// asList is null unless the value is a list: CEL's macros fail on other types, so a value of unknown type is
// checked.
func asList(v Value) Value {
	if v.typ.can(isList) {
		return v.needs(isList)
	}
	n := null()
	n.typ = Type{kinds: isList}
	return n
}

// projected is a list derived from another.
func projected(p projection) Value {
	v := Value{typ: ListOf(p.item.typ), each: &p, has: p.list.has, name: p.list.name}
	if p.flat {
		v.typ = ListOf(p.item.Elements())
	}
	v.plain = p.of(p.list.plain)
	ok := p.item.lenient
	if ok != nil && p.where != nil {
		ok = some(expr.Not(p.where), ok)
	}
	if ok = allOrNil(p.ok, ok); ok != nil {
		v.lenient = expr.Macro(p.list.Or(expr.List()), "all", p.bound, ok)
	}
	v.lenient = allOrNil(p.list.lenient, v.lenient)
	v.strict = allOrNil(p.list.strict, v.lenient)
	if p.item.isNever() {
		v.plain, v.each, v.typ = expr.Call("dyn", expr.List()), nil, ListOf(Any)
	}
	return v
}

// of is the derived list.
func (p *projection) of(list expr.Expr) expr.Expr {
	where := p.where
	if !p.flat {
		where = allOrNil(p.where, p.item.has)
	}
	if where != nil {
		list = expr.Macro(list, "filter", p.bound, where)
	}
	if !expr.Same(p.item.plain, expr.Name(p.bound)) {
		list = expr.Macro(list, "map", p.bound, p.item.plain)
	}
	if p.flat {
		list = expr.Flattened(list)
	}
	return list
}

// mapped maps each element of a list; null results are left out.
func (s *Scope) mapped(list Value, become func(element Value) Value) Value {
	list = asList(list)
	if list.isNever() {
		return list
	}
	return within(s, list.name, func(name string) Value {
		element := list.element(name)
		if list.nulls {
			element.has = expr.NotEqual(element.plain, expr.Null())
		}
		item := become(element)
		return projected(projection{list: list, bound: name, item: item})
	})
}

func (s *Scope) filter(condition gojmespath.ASTNode, list Value) Value {
	list = asList(list)
	if list.isNever() {
		return list
	}
	return within(s, list.name, func(name string) Value {
		element := list.element(name)
		where, ok := s.holds(condition, &element)
		return projected(projection{list: list, bound: name, where: allOrNil(where), item: element, ok: ok})
	})
}

// values are the values of a map, ordered by key.
func (s *Scope) values(m Value) Value {
	if !m.typ.can(isMap) || m.isNever() {
		return asList(null())
	}
	if m.typ.isStruct() && (m.typ.known != nil || m.typ.in.Schema != nil) {
		panic(unsupported("the values of a map", "they are of several types", "name its fields"))
	}
	return s.valuesOf(m)
}

func (s *Scope) valuesOf(m Value) Value {
	return within(s, "keys", func(name string) Value {
		key := expr.Name(name)
		keys := func(of expr.Expr) expr.Expr {
			return expr.Method(expr.Macro(of, "map", name, key), "sort")
		}
		list := Value{typ: ListOf(Text), plain: keys(m.plain), has: m.has, lenient: m.lenient, strict: m.strict}
		item := Expression(expr.Index(m.plain, key), m.Elements())
		return projected(projection{list: list, bound: name, item: item})
	})
}

// flatten joins the lists in a list; other elements stay.
func (s *Scope) flatten(list Value) Value {
	list = asList(list)
	switch elem := list.Elements(); {
	case list.isNever():
		return list
	case len(list.members) > 0:
		return s.concat(list)
	case elem.is(isList):
		if list.each != nil && !list.each.flat {
			p := *list.each
			p.flat = true
			p.where = allOrNil(p.where, p.item.has)
			v := projected(p)
			if len(p.item.members) > 0 {
				v.typ, v.nulls = ListOf(typeOfAll(p.item.members)), slices.ContainsFunc(p.item.members, mayBeNull)
			}
			return v
		}
		return within(s, list.name, func(name string) Value {
			return projected(projection{list: list, bound: name, item: Expression(expr.Name(name), elem), flat: true})
		})
	case elem.can(isList) && list.each != nil: // the elements have unknown types
		v := list
		v.plain, v.typ, v.each, v.opt = expr.Flattened(list.plain), ListOf(elem.element()), nil, nil
		return v
	}
	return list
}

// concat joins the lists of a list literal: [a, b][].
func (s *Scope) concat(list Value) Value {
	var sum expr.Expr
	elem := Type{}
	for i, member := range list.members {
		part := member.Or(expr.List())
		of := member.Elements()
		if !member.typ.is(isList) {
			if member.typ.can(isList) && member.typ.kinds != 0 {
				panic(unsupported("[]", reasonUnknownType, ""))
			}
			if member.typ.kinds != 0 {
				part, of = expr.List(member.plain), member.typ
				if member.has != nil {
					part = expr.Cond(member.has, part, expr.List())
				}
			}
		}
		if elem = either(elem, of); i == 0 {
			elem = of
		}
		if sum == nil {
			sum = part
		} else {
			sum = expr.Binary("+", sum, part)
		}
		list.holes = list.holes || member.has != nil
	}
	return Value{
		typ: ListOf(elem), plain: sum, has: list.has, strict: list.strict,
		lenient: list.lenient, holes: list.holes,
	}
}

// slice translates [a:b], and [::-1].
func (s *Scope) slice(ast gojmespath.ASTNode, on *Value) Value {
	parts, ok := ast.Value.([]*int)
	if !ok || on == nil {
		panic(unsupported("a slice", reasonFails, ""))
	}
	list := asList(*on)
	if list.isNever() {
		return list
	}
	step := 1
	if parts[2] != nil {
		step = *parts[2]
	}
	from, to := parts[0], parts[1]
	of := list.plain
	size := expr.Method(of, "size")
	empty := expr.Call("dyn", expr.List())
	switch {
	case step == -1 && from == nil && to == nil:
		list.plain = expr.Method(of, "reverse")
	case step != 1 || from != nil && *from < 0 || to != nil && *to < 0:
		panic(unsupported("a slice with a step or a negative index", reasonNoFunction, ""))
	case to == nil && (from == nil || *from == 0):
	case to == nil:
		n := expr.Int(int64(*from))
		list.plain = expr.Cond(expr.Binary(">", size, n), expr.Method(of, "slice", n, size), empty)
	case from == nil || *from == 0:
		n := expr.Int(int64(*to))
		list.plain = expr.Cond(expr.Binary(">", size, n), expr.Method(of, "slice", expr.Int(0), n), of)
	default:
		a, b := expr.Int(int64(*from)), expr.Int(int64(*to))
		if *from >= *to {
			list.plain = empty
			break
		}
		list.plain = expr.Cond(expr.Binary(">", size, b), expr.Method(of, "slice", a, b),
			expr.Cond(expr.Binary(">", size, a), expr.Method(of, "slice", a, size), empty))
	}
	list.opt, list.each, list.keysOf = nil, nil, nil
	return list
}

// exists is the condition that an element meets a test.
func (s *Scope) exists(list Value, test func(item Value) expr.Expr) expr.Expr {
	return s.quantified(list, "exists", test)
}

// every is the condition that all elements meet a test; an absent list counts as empty.
func (s *Scope) every(list Value, test func(item Value) expr.Expr) expr.Expr {
	return s.quantified(list, "all", test)
}

func (s *Scope) quantified(list Value, macro string, test func(item Value) expr.Expr) expr.Expr {
	switch {
	case list.isNever():
		return expr.Bool(macro == "all")
	case list.each != nil:
		return s.inProjection(list.each, macro, test)
	}
	return within(s, list.name, func(name string) expr.Expr {
		return quantifier(list.Or(expr.List()), macro, name, test(list.element(name)))
	})
}

// quantifier is of.macro(name, holds), or x in list if equivalent.
func quantifier(of expr.Expr, macro, name string, holds expr.Expr) expr.Expr {
	of = expr.Range(of)
	if value, ok := expr.BoolOf(holds); ok {
		if value == (macro == "all") {
			return expr.Bool(value)
		}
		op := map[string]string{"exists": ">", "all": "=="}[macro]
		return expr.Binary(op, expr.Method(of, "size"), expr.Int(0))
	}
	if macro == "exists" {
		if wanted, ok := expr.EqualTo(holds, expr.Name(name)); ok {
			return expr.Binary("in", wanted, of)
		}
	}
	return expr.Macro(of, macro, name, holds)
}

func (s *Scope) inProjection(p *projection, macro string, test func(item Value) expr.Expr) expr.Expr {
	before := s.bound
	s.bound = append(s.bound[:len(s.bound):len(s.bound)], p.bound)
	defer func() { s.bound = before }()
	var holds expr.Expr
	where := p.where
	if p.flat {
		holds = s.quantified(p.item, macro, test)
	} else {
		where = allOrNil(p.where, p.item.has)
		holds = test(p.item)
	}
	if macro == "exists" {
		return quantifier(p.list.Or(expr.List()), macro, p.bound, expr.And(where, holds))
	}
	if where != nil {
		holds = expr.Or(expr.Not(where), holds)
	}
	return quantifier(p.list.Or(expr.List()), macro, p.bound, holds)
}
