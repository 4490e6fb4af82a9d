package translate

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// Value is what a JMESPath expression or a string with variables is in CEL. It is immutable. Where has
// holds, so does strict, and where strict holds, so does lenient.
type Value struct {
	typ     Type
	plain   expr.Expr        // where has holds
	has     expr.Expr        // nil for always; else the value is null, or it fails
	opt     expr.Expr        // an optional of the value; nil for none that is shorter
	strict  expr.Expr        // nil for always; else the condition without which the rule fails
	lenient expr.Expr        // the same where a missing key is as good as null
	lit     *any             // of a constant
	name    string           // of the field that it is, to name what is bound to its elements
	each    *projection      // of a list that is made of another
	keysOf  *Value           // of the keys of a map
	members []Value          // of a list that the expression lists
	holes   bool             // of a list without the nulls that it has in JMESPath
	nulls   bool             // of a list in which there may be nulls
	fields  map[string]Value // of a map whose fields are elsewhere in CEL
	missing *fallback        // what it is where a value is not there
}

// fallback is a constant that a value is unless a condition holds. Else it is another value: one of another
// type, or a quantity.
type fallback struct {
	value  any
	unless expr.Expr
	also   []any  // what it stands for besides null and ""
	of     *Value // the quantity, or the value without a type
}

// projection is how a list is made: of the elements of a list, those for which the condition holds,
// each replaced by a value.
type projection struct {
	list  Value
	bound string
	where expr.Expr // nil for all
	item  Value     // left out where it is null
	flat  bool      // the items are lists, which are joined
	ok    expr.Expr // nil for always; else the condition without which an element makes all fail
}

// Constant is a JSON value.
func Constant(value any) Value {
	return Value{typ: typeOfLiteral(value), plain: expr.Value(value), lit: &value, has: presence(value != nil)}
}

func presence(there bool) expr.Expr {
	if there {
		return nil
	}
	return expr.Bool(false)
}

// Expression is an expression that always has a value.
func Expression(e expr.Expr, t Type) Value { return Value{typ: t, plain: e} }

// Optional is a value that is there where an optional of it has one; plain is its expression there. In
// Kyverno it is null, or a missing key, elsewhere.
func Optional(optional, plain expr.Expr, t Type, missing bool) Value {
	v := Value{typ: t, plain: plain, opt: optional, has: expr.HasValue(optional)}
	if missing {
		v.strict = v.has
	}
	return v
}

// Found is a value that is there where a condition holds; optional is an optional of it.
func Found(has, optional, plain expr.Expr, t Type) Value {
	return Value{typ: t, plain: plain, opt: optional, has: has}
}

// WithFields is a map whose fields are those values.
func (v Value) WithFields(fields map[string]Value) Value {
	v.fields = fields
	return v
}

// Plain is the expression of the value, which may fail where Has does not hold.
func (v Value) Plain() expr.Expr { return v.plain }

// Type is what is known of the value where it is there.
func (v Value) Type() Type { return v.typ }

// AsList is the value as a list, and the condition that it is one where it is there; nil for always.
func (v Value) AsList() (list Value, is expr.Expr) {
	switch {
	case v.typ.is(isList):
		return v, nil
	case !v.typ.can(isList):
		return v, expr.Bool(false)
	}
	return v.needs(isList), some(expr.Not(v.has), isOf(v.plain, v.typ.all()&isList))
}

// Elements is the type of the elements of a list, or of the values of a map.
func (v Value) Elements() Type { return v.typ.element() }

// Literal returns a constant that does not depend on whether anything fails.
func (v Value) Literal() (any, bool) {
	if v.lit == nil || v.strict != nil || v.lenient != nil {
		return nil, false
	}
	return *v.lit, true
}

// Has is the condition that there is a value which is not null; nil for always.
func (v Value) Has() expr.Expr { return v.has }

// Guard is the condition without which Kyverno's rule fails, and so changes nothing; nil for a value that
// never fails. Where it holds and Has does not, the value is null.
func (v Value) Guard() expr.Expr { return v.strict }

// NeverNull is the value for a rule that fails where it is null.
func (v Value) NeverNull() Value {
	v.strict = v.has
	return v
}

// Required is the value for a rule that fails where there is none, even where a default is given.
func (v Value) Required() Value {
	v.strict, v.lenient = v.has, v.has
	return v
}

// Or is the value, or a default where there is none.
func (v Value) Or(def expr.Expr) expr.Expr {
	switch {
	case v.has == nil:
		return v.plain
	case !expr.IsPath(v.plain) && !v.typ.can(kindsOf(def)):
		return expr.Cond(v.has, expr.Call("dyn", v.plain), expr.Call("dyn", def))
	case v.opt != nil:
		return expr.OrValue(v.opt, def)
	case v.each != nil && expr.Same(def, expr.List()) && expr.Same(v.has, v.each.list.has):
		return v.each.of(v.each.list.Or(def))
	}
	return choose(v.has, v.plain, def)
}

// test is a condition on a value of some kinds, which does not hold where there is none: one that may be
// absent is asked as if it were another for which the condition does not hold either.
func (v Value) test(k kinds, holds func(expr.Expr) expr.Expr) expr.Expr {
	if v.has != nil && v.opt != nil {
		for _, other := range others[k] {
			if value, constant := expr.BoolOf(holds(other)); constant && !value {
				return holds(v.Or(other))
			}
		}
	}
	return expr.And(v.has, holds(v.plain))
}

// others are values that stand for absent ones in conditions.
var others = map[kinds][]expr.Expr{ //nolint:gochecknoglobals // an immutable table
	isString: {expr.String(""), expr.String("-")}, isBool: {expr.Bool(false), expr.Bool(true)},
	isNumber: {expr.Int(0)}, isList: {expr.List()},
}

// Default is the value, or another one where there is none, which may be of another type.
func (v Value) Default(other Value) Value {
	if v.typ.all() == other.typ.all() {
		typ := v.typ
		typ.whole, typ.form, typ.label = typ.whole &&
			other.typ.whole, min(typ.Form(), other.typ.Form()), typ.label && other.typ.label
		return Expression(v.Or(other.plain), typ)
	}
	return Expression(v.Or(expr.Call("dyn", other.plain)), either(v.typ, other.typ))
}

// kindsOf are the kinds that an expression is known to be of.
func kindsOf(e expr.Expr) kinds {
	switch expr.KindOf(e) {
	case expr.Text:
		return isString
	case expr.Integer, expr.Double:
		return isNumber
	case expr.Boolean:
		return isBool
	case expr.ListKind:
		return isList
	case expr.MapKind:
		return isMap
	case expr.NullKind:
		return 0
	}
	return isAny
}

// Optional is the value as an optional.
func (v Value) Optional() expr.Expr {
	switch {
	case v.opt != nil:
		return v.opt
	case v.has == nil:
		return expr.Call("optional.of", v.plain)
	}
	return expr.Cond(v.has, expr.Call("optional.of", v.plain), expr.Call("optional.none"))
}

// element is what a variable of a macro over the list stands for.
func (v Value) element(name string) Value { return Expression(expr.Name(name), v.Elements()) }

// certain is the value where it is known to be there.
func (v Value) certain() Value {
	v.has, v.opt, v.strict, v.lenient = nil, nil, nil, nil
	return v
}

// settled is a value that is there only where it does not fail.
func (v Value) settled() Value {
	if v.lenient == nil {
		return v
	}
	if has := allOrNil(v.has, v.lenient); !expr.Same(has, v.has) {
		v.has, v.opt = has, nil
	}
	return v
}

// forgiving is the value where a missing key is as good as null.
func (v Value) forgiving() Value {
	v.strict = v.lenient
	return v
}

// allOrNil joins conditions, of which nil always holds; the result is nil where it always does.
func allOrNil(conditions ...expr.Expr) expr.Expr {
	joined := expr.And(conditions...)
	if always, ok := expr.BoolOf(joined); ok && always {
		return nil
	}
	return joined
}

// some is the alternative to all.
func some(conditions ...expr.Expr) expr.Expr {
	joined := expr.Or(conditions...)
	if always, ok := expr.BoolOf(joined); ok && always {
		return nil
	}
	return joined
}

// implied is: if test holds, so does condition.
func implied(test, condition expr.Expr) expr.Expr {
	if condition == nil || expr.Same(test, condition) {
		return nil
	}
	return some(expr.Not(test), condition)
}

func (v Value) isNever() bool {
	value, ok := expr.BoolOf(v.has)
	return ok && !value
}

// missing is a key that is never there.
func missing() Value {
	v := null()
	v.strict = expr.Bool(false)
	return v
}

// nothing is null, which fails where the value does.
func (v Value) nothing() Value {
	n := null()
	n.strict, n.lenient = v.strict, v.lenient
	return n
}

// null is a value that is never there.
func null() Value { return Constant(nil) }

// field selects a field of a value.
func (v Value) field(name string) Value {
	if v.isNever() || !v.typ.can(isMap) {
		return v.nothing()
	}
	if v.lit != nil {
		fields, _ := (*v.lit).(map[string]any)
		if value, found := fields[name]; found {
			return Constant(value)
		}
	}
	if f, ok := v.fields[name]; ok {
		return f
	}
	typ, required := v.typ.field(name)
	f := Value{typ: typ, name: name, lenient: v.lenient}
	asKey := !v.typ.isStruct()
	if f.plain = expr.Field(v.plain, name); asKey {
		f.plain = expr.Index(v.plain, expr.String(name))
	}
	if expr.KindOf(v.plain) == expr.OtherKind {
		f.plain = expr.Typed(f.plain, declared(typ))
	}
	switch {
	case required && v.has == nil:
		f.strict = v.strict
		return f
	case required && v.opt == nil:
		f.has, f.strict = v.has, v.strict
		return f
	}
	if f.opt = expr.OptionalField(v.holder(), name); asKey {
		f.opt = expr.OptionalIndex(v.holder(), expr.String(name))
	}
	f.has = expr.HasValue(f.opt)
	if v.has == nil && !asKey && expr.IsIdentifier(name) {
		f.has = expr.Call("has", f.plain)
	}
	return f.partOf(v).notNull()
}

// notNull is a value that is not there where it is null, as one without a type may be: CEL's optionals have a
// null for a value.
func (v Value) notNull() Value {
	if v.typ.kinds == 0 && !v.typ.in.EmptyIsAbsent && expr.IsPath(v.plain) {
		v.has, v.opt = expr.And(v.has, expr.NotEqual(v.plain, expr.Null())), nil
	}
	return v
}

// partOf is a part of a value. CEL has an error for the name of a field where the value is a list, which one
// without a type may be; JMESPath finds nothing there.
func (v Value) partOf(of Value) Value {
	if !of.typ.is(isMap) {
		v.has, v.opt = expr.And(of.has, isOf(of.plain, isMap), v.has), nil
	}
	v.strict = v.foundIn(of)
	return v
}

// holder is what an optional part of the value is of.
func (v Value) holder() expr.Expr {
	if v.has == nil {
		return v.plain
	}
	return v.Optional()
}

// declared is what CEL's type checker knows of a field of an object whose type is declared.
func declared(t Type) expr.Kind {
	switch {
	case t.is(isString):
		return expr.Text
	case t.is(isList):
		return expr.ListKind
	case t.is(isMap) && t.known == nil:
		return expr.MapKind
	case t.is(isMap) && t.in.Schema == nil:
		return expr.OtherKind
	}
	return expr.Dyn
}

// foundIn is the condition that a part of a value is not a missing key: where the value is null, it
// is null as well.
func (v Value) foundIn(of Value) expr.Expr {
	switch {
	case of.has == nil:
		return allOrNil(of.strict, v.has)
	case expr.Same(of.strict, of.has):
		return v.has
	}
	return allOrNil(of.strict, some(expr.Not(of.has), v.has))
}

// key is an entry of a map whose name is computed.
func (v Value) key(name expr.Expr) Value {
	f := Value{typ: v.typ.element(), plain: expr.Index(v.plain, name), lenient: v.lenient}
	f.opt = expr.OptionalIndex(v.holder(), name)
	f.has = expr.HasValue(f.opt)
	if f = f.partOf(v); expr.IsPath(v.plain) {
		return f.notNull()
	}
	return f
}

// index is an element of a list; one that is not there is null.
func (v Value) index(i expr.Expr) Value {
	if v.isNever() || !v.typ.can(isList) {
		return v.nothing()
	}
	parent := v.plain
	switch {
	case v.has != nil && v.opt == nil:
		parent = v.Or(expr.List())
	case v.has != nil:
		parent = v.opt
	}
	f := Value{typ: v.typ.element(), plain: expr.Index(v.plain, i), strict: v.strict, lenient: v.lenient}
	f.opt = expr.OptionalIndex(parent, i)
	f.has = expr.HasValue(f.opt)
	return f
}

// asCondition is a boolean expression that CEL's type checker takes for a condition.
func asCondition(e expr.Expr) expr.Expr {
	if expr.KindOf(e) == expr.Boolean {
		return e
	}
	return expr.Equal(e, expr.Bool(true))
}

// choice is a value that is one of two.
func choice(test expr.Expr, then, otherwise Value) Value {
	if always, ok := expr.BoolOf(test); ok {
		if always {
			return then
		}
		return otherwise
	}
	v := Value{typ: either(then.typ, otherwise.typ), plain: choose(test, then.plain, otherwise.plain)}
	if then.typ.all() != otherwise.typ.all() && !expr.IsPath(then.plain) && !expr.IsPath(otherwise.plain) {
		v.plain = expr.Cond(test, expr.Call("dyn", then.plain), expr.Call("dyn", otherwise.plain))
	}
	if then.lit != nil && *then.lit == nil {
		v.typ, v.plain = otherwise.typ, otherwise.plain
	} else if otherwise.lit != nil && *otherwise.lit == nil {
		v.typ, v.plain = then.typ, then.plain
	}
	v.has = chosenCondition(test, then.has, otherwise.has)
	v.strict = chosenCondition(test, then.strict, otherwise.strict)
	v.lenient = chosenCondition(test, then.lenient, otherwise.lenient)
	if v.has != nil && then.lit == nil && otherwise.lit == nil {
		v.opt = expr.Cond(test, then.Optional(), otherwise.Optional())
	}
	return v
}

func choose(test, then, otherwise expr.Expr) expr.Expr {
	if a, b := expr.KindOf(then), expr.KindOf(otherwise); a != b && a != expr.Dyn && b != expr.Dyn {
		return expr.Cond(test, expr.Call("dyn", then), expr.Call("dyn", otherwise))
	}
	return expr.Cond(test, then, otherwise)
}

func chosenCondition(test, then, otherwise expr.Expr) expr.Expr {
	switch {
	case then == nil && otherwise == nil:
		return nil
	case then == nil:
		return some(test, otherwise)
	case otherwise == nil:
		return some(expr.Not(test), then)
	}
	return expr.Cond(test, then, otherwise)
}

// needs narrows a value to some kinds, of which it has to be for a function: what is missing, null or of
// another kind makes the function fail.
func (v Value) needs(k kinds) Value {
	if v.typ.is(k) {
		return v
	}
	if !v.typ.can(k) {
		n := null()
		n.typ = Type{kinds: k}
		return n
	}
	narrow := v
	narrow.has = allOrNil(v.has, isOf(v.plain, v.typ.all()&k))
	narrow.typ.kinds = v.typ.all() & k
	narrow.opt = nil
	return narrow
}
