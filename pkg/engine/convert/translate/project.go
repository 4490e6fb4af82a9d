package translate

import (
	"slices"

	gojmespath "github.com/kyverno/go-jmespath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// project translates [*], .*, [?...] and [], and what is done with each element behind them.
func (s *Scope) project(ast gojmespath.ASTNode, on *Value) (Value, error) {
	if ast.NodeType == gojmespath.ASTSlice {
		return s.slice(ast, on)
	}
	if on == nil && len(ast.Children) == 0 {
		return Value{}, unsupported("a projection of the whole context", reasonFails, "")
	}
	list, err := s.child(ast, 0, on)
	if err != nil {
		return list, err
	}
	switch ast.NodeType {
	case gojmespath.ASTProjection:
		list.strict = list.lenient
	case gojmespath.ASTValueProjection:
		if list, err = s.values(swallowed(list)); err != nil {
			return list, err
		}
	case gojmespath.ASTFilterProjection:
		if list, err = s.filter(ast.Children[2], swallowed(list)); err != nil {
			return list, err
		}
	case gojmespath.ASTFlatten:
		return s.flatten(swallowed(list))
	default:
		return list, unsupported("the expression", "its construct is not known", "")
	}
	if ast.Children[1].NodeType == gojmespath.ASTIdentity && !list.nulls {
		return list, nil
	}
	return s.mapped(list, func(element Value) (Value, error) { return s.lenientOn(ast.Children[1], element) })
}

func (s *Scope) lenientOn(ast gojmespath.ASTNode, on Value) (Value, error) {
	v, err := s.eval(ast, &on)
	return v.forgiving(), err
}

// swallowed is a value that is null where it fails.
func swallowed(v Value) Value {
	v.has = all(v.lenient, v.has)
	v.strict, v.lenient = nil, nil
	return v
}

// asList is a value that is null unless it is a list.
func asList(v Value) Value {
	if v.typ.can(isList) {
		v.typ.kinds = isList
		return v
	}
	n := null()
	n.typ = Type{kinds: isList}
	return n
}

// made is a list that is made of another.
func made(p projection) Value {
	v := Value{typ: ListOf(p.item.typ), each: &p, has: p.list.has}
	if p.flat {
		v.typ = ListOf(p.item.Elements())
	}
	build := func(list expr.Expr) expr.Expr {
		where := all(p.where, p.item.has)
		if p.flat {
			where = p.where
		}
		if where != nil {
			list = expr.Macro(list, "filter", p.bound, where)
		}
		item := p.item.plain
		if !expr.Same(item, expr.Name(p.bound)) {
			list = expr.Macro(list, "map", p.bound, item)
		}
		if p.flat {
			list = expr.Method(list, "flatten")
		}
		return list
	}
	v.plain = build(p.list.plain)
	if p.list.has != nil {
		v.short = &shorter{expr.List(), build(p.list.Or(expr.List()))}
	}
	ok := p.item.lenient
	if ok != nil && p.where != nil {
		ok = some(expr.Not(p.where), ok)
	}
	if ok = all(p.ok, ok); ok != nil {
		v.lenient = expr.Macro(p.list.Or(expr.List()), "all", p.bound, ok)
	}
	v.lenient = all(p.list.lenient, v.lenient)
	v.strict = all(p.list.strict, v.lenient)
	if p.item.isNever() {
		v.plain, v.short, v.each, v.typ = expr.Call("dyn", expr.List()), nil, nil, ListOf(Any)
	}
	return v
}

// mapped is the list of what becomes of each element; those that become null are left out.
func (s *Scope) mapped(list Value, become func(element Value) (Value, error)) (Value, error) {
	list = asList(list)
	if list.isNever() {
		return list, nil
	}
	if list.each != nil && !list.each.flat {
		p := *list.each
		item, err := become(p.item)
		if err != nil {
			return item, err
		}
		item.has = all(p.item.has, item.has)
		item.lenient = all(implied(p.item.has, item.lenient), p.item.lenient)
		p.item = item
		return made(p), nil
	}
	var out Value
	err := s.within(list.name, func(name string) error {
		element := list.element(name)
		if list.nulls {
			element.has = expr.NotEqual(element.plain, expr.Null())
		}
		item, err := become(element)
		if err != nil {
			return err
		}
		out = made(projection{list: list, bound: name, item: item})
		return nil
	})
	return out, err
}

func (s *Scope) filter(condition gojmespath.ASTNode, list Value) (Value, error) {
	list = asList(list)
	if list.isNever() {
		return list, nil
	}
	var out Value
	err := s.within(list.name, func(name string) error {
		element := list.element(name)
		where, ok, err := s.holds(condition, &element)
		if err != nil {
			return err
		}
		out = made(projection{list: list, bound: name, where: all(where), item: element, ok: ok})
		return nil
	})
	return out, err
}

// values are those of a map, in the order of its keys.
func (s *Scope) values(m Value) (Value, error) {
	if !m.typ.can(isMap) || m.isNever() {
		return asList(null()), nil
	}
	if m.typ.isStruct() && (m.typ.known != nil || m.typ.in.Schema != nil) {
		return m, unsupported("the values of a map", "they are of several types", "name its fields")
	}
	return s.valuesOf(m)
}

func (s *Scope) valuesOf(m Value) (Value, error) {
	var out Value
	err := s.within("keys", func(name string) error {
		key := expr.Name(name)
		keys := func(of expr.Expr) expr.Expr {
			return expr.Method(expr.Macro(of, "map", name, key), "sort")
		}
		list := Value{typ: ListOf(Text), plain: keys(m.plain), has: m.has, lenient: m.lenient, strict: m.strict}
		if m.has != nil {
			list.short = &shorter{expr.List(), keys(m.Or(expr.Map()))}
		}
		item := Expression(expr.Index(m.plain, key), m.Elements())
		out = made(projection{list: list, bound: name, item: item})
		return nil
	})
	return out, err
}

// flatten joins the lists in a list; what is no list stays.
func (s *Scope) flatten(list Value) (Value, error) {
	list = asList(list)
	switch elem := list.Elements(); {
	case list.isNever():
		return list, nil
	case len(list.members) > 0:
		return s.concat(list)
	case elem.is(isList):
		if list.each != nil && !list.each.flat {
			p := *list.each
			p.flat = true
			p.where = all(p.where, p.item.has)
			v := made(p)
			for i, member := range p.item.members {
				if elem = either(elem, member.typ); i == 0 {
					elem = member.typ
				}
				v.typ = ListOf(elem)
			}
			v.nulls = slices.ContainsFunc(p.item.members, func(member Value) bool { return member.has != nil })
			return v, nil
		}
		var out Value
		err := s.within(list.name, func(name string) error {
			out = made(projection{list: list, bound: name, item: Expression(expr.Name(name), elem), flat: true})
			return nil
		})
		return out, err
	case elem.can(isList) && list.each != nil: // of which nothing is known
		flat := func(e expr.Expr) expr.Expr { return expr.Method(e, "flatten") }
		v := list
		v.plain, v.typ, v.each, v.opt = flat(list.plain), ListOf(elem.element()), nil, nil
		v.short = &shorter{expr.List(), flat(list.Or(expr.List()))}
		return v, nil
	}
	return list, nil
}

// concat joins lists that an expression lists: [a, b][].
func (s *Scope) concat(list Value) (Value, error) {
	var sum expr.Expr
	elem := Type{}
	for i, member := range list.members {
		part := member.Or(expr.List())
		of := member.Elements()
		if !member.typ.is(isList) {
			if member.typ.can(isList) && member.typ.kinds != 0 {
				return list, unsupported("[]", reasonUnknownType, "")
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
	return Value{typ: ListOf(elem), plain: sum, has: list.has, strict: list.strict, lenient: list.lenient, holes: list.holes}, nil
}

// slice translates [a:b], and [::-1].
func (s *Scope) slice(ast gojmespath.ASTNode, on *Value) (Value, error) {
	parts, ok := ast.Value.([]*int)
	if !ok || on == nil {
		return Value{}, unsupported("a slice", reasonFails, "")
	}
	list := asList(*on)
	if list.isNever() {
		return list, nil
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
		return list, unsupported("a slice with a step or a negative index", reasonNoFunction, "")
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
	list.short, list.opt, list.each, list.keysOf = nil, nil, nil, nil
	return list, nil
}

// exists is the condition that an element meets a condition; nil is met by all.
func (s *Scope) exists(list Value, test func(item Value) (expr.Expr, error)) (expr.Expr, error) {
	return s.quantified(list, "exists", test)
}

// every is the condition that all elements meet a condition; an absent list counts as empty.
func (s *Scope) every(list Value, test func(item Value) (expr.Expr, error)) (expr.Expr, error) {
	return s.quantified(list, "all", test)
}

func (s *Scope) quantified(list Value, macro string, test func(item Value) (expr.Expr, error)) (expr.Expr, error) {
	always := test == nil
	if always {
		test = func(Value) (expr.Expr, error) { return expr.Bool(true), nil }
	}
	join, empty := expr.Or, expr.Bool(false)
	if macro == "all" {
		join, empty = expr.And, expr.Bool(true)
	}
	if literal, ok := list.Literal(); ok {
		items, _ := literal.([]any)
		out := []expr.Expr{empty}
		for _, item := range items {
			holds, err := test(Constant(item))
			if err != nil {
				return nil, err
			}
			out = append(out, holds)
		}
		return join(out...), nil
	}
	if list.isNever() {
		return empty, nil
	}
	if p := list.each; p != nil {
		return s.inProjection(p, macro, test)
	}
	of := list.Or(expr.List())
	if always {
		return expr.Binary(">", expr.Method(of, "size"), expr.Int(0)), nil
	}
	var out expr.Expr
	err := s.within(list.name, func(name string) error {
		holds, err := test(list.element(name))
		if err != nil {
			return err
		}
		out = quantifier(of, macro, name, holds)
		return nil
	})
	return out, err
}

// quantifier is of.macro(name, holds); x in list where that says the same.
func quantifier(of expr.Expr, macro, name string, holds expr.Expr) expr.Expr {
	of = expr.Range(of)
	if value, ok := expr.BoolOf(holds); ok {
		if value == (macro == "all") {
			return expr.Bool(value)
		}
		op := ">"
		if macro == "all" {
			op = "=="
		}
		return expr.Binary(op, expr.Method(of, "size"), expr.Int(0))
	}
	if macro == "exists" {
		if wanted, ok := expr.EqualTo(holds, expr.Name(name)); ok {
			return expr.Binary("in", wanted, of)
		}
	}
	return expr.Macro(of, macro, name, holds)
}

func (s *Scope) inProjection(p *projection, macro string, test func(item Value) (expr.Expr, error)) (expr.Expr, error) {
	before := s.bound
	s.bound = append(s.bound[:len(s.bound):len(s.bound)], p.bound)
	defer func() { s.bound = before }()
	var holds expr.Expr
	var err error
	where := p.where
	if p.flat {
		holds, err = s.quantified(p.item, macro, test)
	} else {
		where = all(p.where, p.item.has)
		holds, err = test(p.item)
	}
	if err != nil {
		return nil, err
	}
	if macro == "exists" {
		if !p.flat && p.where == nil && p.item.has != nil {
			if wanted, ok := expr.EqualTo(holds, p.item.plain); ok && expr.KindOf(wanted) == expr.Text && !expr.Same(wanted, expr.String("")) {
				return quantifier(p.list.Or(expr.List()), macro, p.bound, expr.Equal(p.item.Or(expr.String("")), wanted)), nil
			}
		}
		return quantifier(p.list.Or(expr.List()), macro, p.bound, expr.And(where, holds)), nil
	}
	if where != nil {
		holds = expr.Or(expr.Not(where), holds)
	}
	return quantifier(p.list.Or(expr.List()), macro, p.bound, holds), nil
}
