package translate

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// Value is the CEL form of a JMESPath expression or a string with variables. It is immutable. has implies
// strict, and strict implies lenient.
type Value struct {
	typ     Type
	plain   expr.Expr        // valid if has holds
	has     expr.Expr        // nil: always; else the value is null or fails without it
	opt     expr.Expr        // an optional of the value; nil if not shorter
	strict  expr.Expr        // nil: always; else the condition without which the rule fails
	lenient expr.Expr        // the same, with missing keys as null
	lit     *any             // of a constant
	name    string           // of the field, to name variables for its elements
	each    *projection      // of a list derived from another
	keysOf  *Value           // of the keys of a map
	members []Value          // of a list literal
	holes   bool             // of a list without the nulls of the JMESPath result
	nulls   bool             // of a list that may contain nulls
	fields  map[string]Value // of a map whose fields are elsewhere in CEL
	missing *fallback        // the default for a missing value
}

// fallback is a constant that replaces a value unless a condition holds. Otherwise the value is of another
// type, or a quantity.
type fallback struct {
	value  any
	unless expr.Expr
	also   []any  // replaced values besides null and ""
	of     *Value // the quantity, or the value of unknown type
}

// projection derives a list: it maps the elements of a list for which the condition holds.
type projection struct {
	list  Value
	bound string
	where expr.Expr // nil: all
	item  Value     // left out if null
	flat  bool      // the items are lists, which are joined
	ok    expr.Expr // nil: always; else the condition without which an element fails all
}

// Constant is a constant JSON value.
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

// Optional is a value that exists if its optional has a value, with its plain expression for that case.
// Otherwise it is null in Kyverno, or a missing key.
func Optional(optional, plain expr.Expr, t Type, missing bool) Value {
	v := Value{typ: t, plain: plain, opt: optional, has: expr.HasValue(optional)}
	if missing {
		v.strict = v.has
	}
	return v
}

// Found is a value that exists if a condition holds; optional is an optional of it.
func Found(has, optional, plain expr.Expr, t Type) Value {
	return Value{typ: t, plain: plain, opt: optional, has: has}
}

// WithFields is a map with fields of these values.
func (v Value) WithFields(fields map[string]Value) Value {
	v.fields = fields
	return v
}

// Plain is the expression of the value; it may fail unless Has holds.
func (v Value) Plain() expr.Expr { return v.plain }

// Type is the type of the value if it exists.
func (v Value) Type() Type { return v.typ }

// AsList is the value as a list, and the condition that an existing value is a list; nil: always.
func (v Value) AsList() (list Value, is expr.Expr) {
	switch {
	case v.typ.is(isList):
		return v, nil
	case !v.typ.can(isList):
		return v, expr.Bool(false)
	}
	return v.needs(isList), some(expr.Not(v.has), isOf(v.plain, v.typ.all()&isList))
}

// Elements is the type of a list's elements or a map's values.
func (v Value) Elements() Type { return v.typ.element() }

// Literal returns a constant that cannot fail.
func (v Value) Literal() (any, bool) {
	if v.lit == nil || v.strict != nil || v.lenient != nil {
		return nil, false
	}
	return *v.lit, true
}

// Has is the condition that the value exists and is not null; nil: always.
func (v Value) Has() expr.Expr { return v.has }

// Guard is the condition without which Kyverno's rule fails and changes nothing; nil: never fails. If it
// holds but Has does not, the value is null.
func (v Value) Guard() expr.Expr { return v.strict }

// NeverNull is the value for a rule that fails on null.
func (v Value) NeverNull() Value {
	v.strict = v.has
	return v
}

// Required is the value for a rule that fails without it, even with a default.
func (v Value) Required() Value {
	v.strict, v.lenient = v.has, v.has
	return v
}

// Or is the value or a default.
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

// test is a condition on a value of some kinds, false if there is none: a value that may be absent gets a
// default for which the condition is false.
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

// others are defaults for absent values in conditions.
var others = map[kinds][]expr.Expr{ //nolint:gochecknoglobals // an immutable table
	isString: {expr.String(""), expr.String("-")}, isBool: {expr.Bool(false), expr.Bool(true)},
	isNumber: {expr.Int(0)}, isList: {expr.List()},
}

// Default is the value or another one, of any type.
func (v Value) Default(other Value) Value {
	if v.typ.all() == other.typ.all() {
		typ := v.typ
		typ.whole, typ.form, typ.label = typ.whole &&
			other.typ.whole, min(typ.Form(), other.typ.Form()), typ.label && other.typ.label
		return Expression(v.Or(other.plain), typ)
	}
	return Expression(v.Or(expr.Call("dyn", other.plain)), either(v.typ, other.typ))
}

// kindsOf are the known kinds of an expression.
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

// element is the element that a macro variable holds.
func (v Value) element(name string) Value { return Expression(expr.Name(name), v.Elements()) }

// certain is the value if it is known to exist.
func (v Value) certain() Value {
	v.has, v.opt, v.strict, v.lenient = nil, nil, nil, nil
	return v
}

// settled is a value that exists only if it does not fail.
func (v Value) settled() Value {
	if v.lenient == nil {
		return v
	}
	if has := allOrNil(v.has, v.lenient); !expr.Same(has, v.has) {
		v.has, v.opt = has, nil
	}
	return v
}

// forgiving is the value with missing keys as null.
func (v Value) forgiving() Value {
	v.strict = v.lenient
	return v
}

// allOrNil is the conjunction of conditions; nil is a condition that always holds.
func allOrNil(conditions ...expr.Expr) expr.Expr {
	joined := expr.And(conditions...)
	if always, ok := expr.BoolOf(joined); ok && always {
		return nil
	}
	return joined
}

// some is the disjunction of conditions; nil is a condition that always holds.
func some(conditions ...expr.Expr) expr.Expr {
	joined := expr.Or(conditions...)
	if always, ok := expr.BoolOf(joined); ok && always {
		return nil
	}
	return joined
}

// implied means: if test holds, so does condition.
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

func missing() Value {
	v := null()
	v.strict = expr.Bool(false)
	return v
}

// nothing is null, and fails if the value fails.
func (v Value) nothing() Value {
	n := null()
	n.strict, n.lenient = v.strict, v.lenient
	return n
}

func null() Value { return Constant(nil) }

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

// notNull is absent if the value is null, as a value of unknown type may be: CEL's optionals may contain
// null.
func (v Value) notNull() Value {
	if v.typ.kinds == 0 && !v.typ.in.EmptyIsAbsent && expr.IsPath(v.plain) {
		v.has, v.opt = expr.And(v.has, expr.NotEqual(v.plain, expr.Null())), nil
	}
	return v
}

// partOf is a part of a value. A field of a list is an error in CEL but null in JMESPath, which matters for
// values of unknown type.
func (v Value) partOf(of Value) Value {
	if !of.typ.is(isMap) {
		v.has, v.opt = expr.And(of.has, isOf(of.plain, isMap), v.has), nil
	}
	v.strict = v.foundIn(of)
	return v
}

// holder is the receiver of an optional part.
func (v Value) holder() expr.Expr {
	if v.has == nil {
		return v.plain
	}
	return v.Optional()
}

// declared is the type of a declared field for CEL's type checker.
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

// foundIn is the condition that a part is not a missing key: a part of null is null.
func (v Value) foundIn(of Value) expr.Expr {
	switch {
	case of.has == nil:
		return allOrNil(of.strict, v.has)
	case expr.Same(of.strict, of.has):
		return v.has
	}
	return allOrNil(of.strict, some(expr.Not(of.has), v.has))
}

// key is a map entry with a computed name.
func (v Value) key(name expr.Expr) Value {
	f := Value{typ: v.typ.element(), plain: expr.Index(v.plain, name), lenient: v.lenient}
	f.opt = expr.OptionalIndex(v.holder(), name)
	f.has = expr.HasValue(f.opt)
	if f = f.partOf(v); expr.IsPath(v.plain) {
		return f.notNull()
	}
	return f
}

// index is a list element; a missing one is null.
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

// asCondition is a boolean expression with a static boolean type.
func asCondition(e expr.Expr) expr.Expr {
	if expr.KindOf(e) == expr.Boolean {
		return e
	}
	return expr.Equal(e, expr.Bool(true))
}

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

// needs restricts a function's argument to some kinds: a missing, null or other value makes the function
// fail.
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
