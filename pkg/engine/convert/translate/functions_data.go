package translate

import (
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

func length(c *callOf) Value {
	arg := c.args[0]
	if arg.holes {
		panic(unsupported(c.name, "the list has nulls that CEL's has not", "leave out what is absent"))
	}
	if len(arg.members) > 0 {
		return Constant(int64(len(arg.members)))
	}
	of := arg
	if arg.keysOf != nil {
		of = *arg.keysOf // as many as the map's keys
	}
	return Expression(expr.Method(of.plain, "size"), Number)
}

func contains(c *callOf) Value {
	of, what := c.args[0], c.args[1]
	if what.isNever() {
		return Constant(false)
	}
	var inList, inText Value
	if of.typ.can(isList) {
		list := asList(of)
		list.has = nil
		holds := c.exists(list, func(item Value) expr.Expr { return equal(item, what) })
		inList = boolean(holds)
		if of.typ.is(isList) {
			return inList
		}
	}
	if !what.typ.can(isString) {
		inText = Constant(false)
	} else {
		inText = Expression(expr.Method(of.plain, "contains", what.plain), Boolean)
	}
	if what.has != nil || !what.typ.is(isString) {
		inText = Expression(expr.And(what.needs(isString).has, inText.plain), Boolean)
	}
	if of.typ.is(isString) {
		return inText
	}
	return Expression(expr.Cond(isOf(of.plain, isString), inText.plain, inList.plain), Boolean)
}

// elements requires all elements of a list to be of a kind.
func (c *callOf) elements(i int, k kinds) Value {
	list := c.args[i]
	elem := list.Elements()
	if len(list.members) > 0 && list.lit == nil {
		items := make([]expr.Expr, len(list.members))
		for i, member := range list.members {
			if member = member.needs(k); member.isNever() {
				panic(unsupported(c.name, reasonFails, "an element is of another type"))
			}
			items[i], c.has = member.plain, allOrNil(c.has, member.has)
		}
		return Expression(expr.List(items...), ListOf(Type{kinds: k}))
	}
	if elem.is(k) {
		return list
	}
	if !elem.can(k) {
		panic(unsupported(c.name, reasonFails, "the elements are of another type"))
	}
	name := c.fresh(list.name)
	c.has = allOrNil(c.has, expr.Macro(list.plain, "all", name, isOf(expr.Name(name), elem.all()&k)))
	narrow := elem
	narrow.kinds = elem.all() & k
	list.typ = ListOf(narrow)
	return list
}

func join(c *callOf) Value {
	return Expression(expr.Method(c.elements(1, isString).plain, "join", c.args[0].plain), Text)
}

func keys(c *callOf) Value {
	of := c.args[0]
	k := c.fresh("keys")
	sorted := func(of expr.Expr) expr.Expr { return expr.Method(expr.Macro(of, "map", k, expr.Name(k)), "sort") }
	v := Expression(sorted(of.plain), ListOf(Type{kinds: isString, form: of.typ.form}))
	v.keysOf, v.typ.form = &of, of.typ.form
	v.name = "keys"
	return v
}

// mapList keeps nulls.
func mapList(c *callOf) Value {
	nulls := false
	if len(c.refs) != 1 {
		panic(unsupported(c.name, reasonFails, "its first argument is an &expression"))
	}
	v := c.mapped(c.args[1], func(element Value) Value {
		item := c.lenientOn(c.refs[0], element)
		if item.has == nil {
			return item
		}
		kept := Expression(item.Or(expr.Null()), Any)
		kept.lenient, kept.strict = item.lenient, item.lenient
		nulls = true
		return kept
	})
	v.nulls = nulls
	return v
}

// extreme is the largest or the smallest element; null for an empty list.
func extreme(name string) func(*callOf) Value {
	return func(c *callOf) Value {
		list := c.ordered(0)
		v := Expression(expr.Method(list.plain, name), list.Elements())
		if len(list.members) == 0 {
			v.has = expr.Binary(">", expr.Method(list.plain, "size"), expr.Int(0))
		}
		return v
	}
}

// ordered is a list of only strings or only numbers.
func (c *callOf) ordered(i int) Value {
	elem := c.args[i].Elements()
	if elem.is(isNumber) || elem.is(isString) {
		return c.args[i]
	}
	panic(unsupported(c.name, reasonUnknownType, "its elements have to be texts, or numbers"))
}

// extremeBy is the first element with the largest or smallest key.
func extremeBy(name string) func(*callOf) Value {
	return func(c *callOf) Value {
		list := c.args[0]
		v := c.keyed(list, func(bound string, key Value) Value {
			best := expr.Method(expr.Macro(list.plain, "map", bound, key.plain), name)
			return Expression(expr.Index(expr.Macro(list.plain, "filter", bound, expr.Equal(key.plain, best)),
				expr.Int(0)), list.Elements())
		})
		v.has = expr.Binary(">", expr.Method(list.plain, "size"), expr.Int(0))
		return v
	}
}

func sortBy(c *callOf) Value {
	list := c.args[0]
	return c.keyed(list, func(bound string, key Value) Value {
		return Expression(expr.Macro(list.plain, "sortBy", bound, key.plain), list.typ)
	})
}

// keyed translates the &expression that orders elements; it has to be a string or a number for each.
func (c *callOf) keyed(list Value, use func(bound string, key Value) Value) Value {
	if len(c.refs) != 1 {
		panic(unsupported(c.name, reasonFails, "its second argument is an &expression"))
	}
	return within(c.Scope, list.name, func(bound string) Value {
		key := c.lenientOn(c.refs[0], list.element(bound))
		if !key.typ.is(isNumber) && !key.typ.is(isString) {
			panic(unsupported(c.name, reasonUnknownType, "the key has to be a text, or a number"))
		}
		if key.has != nil { // it is not evaluated for a list of one element
			panic(unsupported(c.name, "the key may be absent", "give it a default"))
		}
		if key.mayHaveFraction() { // CEL cannot order mixed integers and doubles
			key.plain = fraction(key)
		}
		return use(bound, key)
	})
}

func sortList(c *callOf) Value {
	list := c.ordered(0)
	if list.keysOf != nil {
		return list // keys are sorted
	}
	of := list.plain
	if elem := list.Elements(); elem.is(isNumber) && !elem.whole { // CEL cannot sort mixed integers and doubles
		name := c.fresh(list.name)
		of = expr.Macro(of, "map", name, fraction(list.element(name)))
	}
	return Expression(expr.Method(of, "sort"), list.typ)
}

func merge(c *callOf) Value {
	v := c.args[0]
	for _, next := range c.args[1:] {
		if literal, ok := v.Literal(); ok && len(literal.(map[string]any)) == 0 {
			v = next
			continue
		}
		k, i := "k", "i"
		if c.isBound(k) || c.isBound(i) {
			k, i = c.fresh("keys"), c.fresh("indices")
		}
		key := expr.Name(k)
		names := func(of Value) expr.Expr { return expr.Macro(of.plain, "map", k, key) }
		both := expr.Method(expr.Binary("+", names(v), names(next)), "distinct")
		value := choose(expr.Binary("in", key, next.plain), entryOf(next.plain, key), entryOf(v.plain, key))
		entry := expr.Map(expr.Entry{Key: key, Value: value})
		v = Expression(expr.Method(both, "transformMapEntry", expr.Name(i), key, entry), either(v.typ, next.typ))
	}
	v.has, v.opt = nil, nil
	return v
}

// entryOf is a map entry. CEL must not infer its type from a literal.
func entryOf(of, key expr.Expr) expr.Expr {
	if expr.KindOf(of) == expr.MapKind {
		of = expr.Call("dyn", of)
	}
	return expr.Index(of, key)
}

func notNull(c *callOf) Value {
	v := null()
	for i := len(c.args) - 1; i >= 0; i-- {
		arg := c.args[i]
		if arg.isNever() {
			continue
		}
		if arg.has == nil {
			v = arg
			continue
		}
		if !v.isNever() && !arg.typ.can(v.typ.all()) {
			panic(unsupported(c.name, "their types differ", ""))
		}
		if value, ok := v.Literal(); ok && value != nil {
			v = Expression(arg.Or(v.plain), either(arg.typ, v.typ))
			continue
		}
		v = choice(arg.has, arg.certain(), v)
	}
	v.lenient, v.strict = nil, nil
	return v
}

func reverse(c *callOf) Value {
	arg := c.args[0]
	switch {
	case arg.typ.is(isList):
		return Expression(expr.Method(arg.plain, "reverse"), arg.typ)
	case arg.typ.is(isString):
		return Expression(expr.Method(expr.Method(expr.Method(arg.plain, "split", expr.String("")), "reverse"),
			"join"), Text)
	}
	panic(unsupported(c.name, reasonUnknownType, ""))
}

func toArray(c *callOf) Value {
	arg := c.args[0]
	switch {
	case arg.isNever():
		return Constant([]any{nil})
	case arg.typ.is(isList) && arg.has == nil:
		return arg
	case arg.typ.is(isList) && expr.Same(arg.strict, arg.has): // other values fail
		return arg.Required()
	case !arg.typ.can(isList) && arg.has == nil:
		return Expression(expr.List(arg.plain), ListOf(arg.typ))
	}
	panic(unsupported(c.name, reasonUnknownType, ""))
}

// toNumber returns null for values that are not numbers. Only decimal numbers are supported. NaN and infinite
// numbers make the rule fail, since JSON does not have them.
func toNumber(c *callOf) Value {
	arg := c.args[0]
	if value, ok := arg.Literal(); ok {
		switch value.(type) {
		case int64, float64:
			return arg
		}
	}
	switch {
	case arg.typ.is(isNumber):
		return arg
	case arg.typ.is(isString):
		c.ok = allOrNil(c.ok, implied(expr.And(arg.has),
			expr.Not(expr.Method(arg.plain, "matches", expr.String("^[-+]?(?i:inf|infinity)$|^(?i:nan)$")))))
		whole := expr.Method(arg.plain, "matches", expr.String("^[-+]?[0-9]{1,15}$"))
		v := Expression(expr.Cond(whole, expr.Call("dyn", expr.Call("int", arg.plain)),
			expr.Call("dyn", expr.Call("double", arg.plain))), Number)
		v.has = allOrNil(arg.has, expr.Method(arg.plain, "matches", expr.String(decimal)))
		return v
	}
	panic(unsupported(c.name, reasonUnknownType, ""))
}

// decimal matches the numbers that fit a double.
const decimal = `^[-+]?([0-9](_?[0-9]){0,199}([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]{1,2})?$`

func toString(c *callOf) Value {
	v := c.inserting(c.args[0], c.encoded)
	v.strict, v.lenient = nil, nil
	return v
}

func typeName(c *callOf) Value {
	arg := c.args[0]
	var name expr.Expr
	for _, one := range []struct {
		kind kinds
		name string
	}{{isMap, "object"}, {isList, "array"}, {isNumber, "number"}, {isBool, "boolean"}, {isString, "string"}} {
		if !arg.typ.can(one.kind) || arg.isNever() {
			continue
		}
		text := expr.String(one.name)
		if name == nil {
			name = text
		} else {
			name = expr.Cond(isOf(arg.plain, one.kind), text, name)
		}
	}
	if name == nil {
		return Constant("null")
	}
	return Expression(expr.Cond(arg.has, name, expr.String("null")), Text)
}

func labelMatch(c *callOf) Value {
	a, b := c.args[0], c.args[1]
	k := c.fresh("keys")
	key := expr.Name(k)
	holds := expr.And(expr.Binary("in", key, b.plain),
		expr.Equal(expr.Index(b.plain, key), expr.Index(a.plain, key)))
	return Expression(expr.Macro(a.plain, "all", k, holds), Boolean)
}

// lookup returns null for a missing key.
func lookup(c *callOf) Value {
	of, key := c.args[0], c.args[1]
	c.covered = key.has == nil
	switch {
	case of.typ.is(isMap) && key.typ.is(isString):
		if name, ok := expr.StringOf(key.plain); ok {
			return of.field(name).forgiving()
		}
		return of.key(key.plain).forgiving()
	case of.typ.is(isList) && key.typ.is(isNumber):
		return of.index(whole(key)).forgiving()
	}
	panic(unsupported(c.name, reasonUnknownType, ""))
}

// items returns an object of two fields for each map key or list index.
func items(c *callOf) Value {
	keyName := c.constant(1)
	valueName := c.constant(2)
	of := c.args[0]
	elem := of.Elements()
	item := Type{
		kinds: isMap, known: map[string]*Type{keyName: &Text, valueName: &elem},
		required: []string{keyName, valueName},
	}
	switch {
	case keyName == valueName:
		panic(unsupported(c.name, "both fields have one name", ""))
	case of.typ.is(isMap):
		k := c.fresh("keys")
		sorted := expr.Method(expr.Macro(of.plain, "map", k, expr.Name(k)), "sort")
		fields := expr.Map(
			expr.Entry{Key: expr.String(keyName), Value: expr.Name(k)},
			expr.Entry{Key: expr.String(valueName), Value: expr.Index(of.plain, expr.Name(k))})
		v := Expression(expr.Macro(sorted, "map", k, fields), ListOf(item))
		v.name = "items"
		return v
	case of.typ.is(isList):
		item.known[keyName] = &Number
		e, i := c.fresh(of.name), c.fresh("indices")
		fields := expr.Map(
			expr.Entry{Key: expr.String(keyName), Value: expr.Call("dyn", expr.Name(i))},
			expr.Entry{Key: expr.String(valueName), Value: expr.Name(e)})
		return Expression(expr.Method(of.plain, "transformList", expr.Name(i), expr.Name(e), fields), ListOf(item))
	}
	panic(unsupported(c.name, reasonUnknownType, ""))
}

// objectFromLists pairs keys and values; the last of equal keys wins.
func objectFromLists(c *callOf) Value {
	names, values := c.args[0], c.args[1]
	if names.keysOf == nil {
		panic(unsupported(c.name, "CEL's maps cannot be made of keys that may be there twice", "take the keys of a map"))
	}
	i, k := "i", "k"
	entry := expr.Map(expr.Entry{
		Key:   expr.Name(k),
		Value: expr.OrValue(expr.OptionalIndex(values.plain, expr.Name(i)), expr.Null()),
	})
	elem := values.Elements()
	return Expression(expr.Method(names.plain, "transformMapEntry", expr.Name(i), expr.Name(k), entry),
		Type{kinds: isMap, elem: &elem})
}

// number is an operand of an arithmetic function; quantities and durations are unsupported.
func (c *callOf) number(i int) Value {
	arg := c.args[i]
	switch {
	case arg.typ.is(isNumber) && !arg.isNever():
		return arg
	case arg.typ.is(isString):
		panic(unsupported(c.name+" of texts", "CEL cannot write quantities and durations", "MutatingPolicies can add them by quantity()"))
	case arg.typ.quantity:
		panic(c.quantities())
	}
	panic(unsupported(c.name, reasonUnknownType, "use to_number"))
}

// quantities is the error for quantities and durations as operands.
func (c *callOf) quantities() Failure {
	return unsupported(c.name+" of quantities", "CEL cannot write what comes of it, such as 1536Mi", "compare it with quantity(a).add(quantity(b)), or write it as a number, with asInteger()")
}

// whole is a number as an integer.
func whole(v Value) expr.Expr {
	if expr.KindOf(v.plain) == expr.Integer {
		return v.plain
	}
	return expr.Call("int", v.plain)
}

func fraction(v Value) expr.Expr {
	if value, ok := v.Literal(); ok {
		switch n := value.(type) {
		case int64:
			return expr.Float(float64(n))
		case float64:
			return expr.Float(n)
		}
	}
	if expr.KindOf(v.plain) == expr.Double {
		return v.plain
	}
	return expr.Call("double", v.plain)
}

func isWhole(v Value) bool { return v.typ.whole || expr.KindOf(v.plain) == expr.Integer }

// mayHaveFraction reports whether the value is a number that may not be an integer.
func (v Value) mayHaveFraction() bool {
	return v.typ.can(isNumber) && v.typ.kinds != isString|isNumber && !isWhole(v)
}

func arithmetic(op string) func(*callOf) Value {
	return func(c *callOf) Value {
		a := c.number(0)
		b := c.number(1)
		c.has = allOrNil(c.has, a.has, b.has)
		if op == "/" || op == "%" {
			if value, ok := b.Literal(); ok && value == int64(0) {
				panic(unsupported(c.name, reasonFails, "the divisor is zero"))
			} else if !ok {
				c.has = allOrNil(c.has, expr.NotEqual(b.plain, expr.Int(0)))
			}
		}
		wholes := isWhole(a) && isWhole(b)
		switch {
		case op == "%" && !wholes:
			panic(unsupported(c.name, reasonFraction, "use it with whole numbers of built-in kinds"))
		case op == "/" && wholes: // never infinite
			return Expression(expr.Binary(op, fraction(a), fraction(b)), Number)
		case !wholes:
			return c.finite(expr.Binary(op, fraction(a), fraction(b)))
		}
		return Expression(expr.Binary(op, whole(a), whole(b)), Whole)
	}
}

// finite checks the result of a double calculation. Kyverno's rule fails if it is out of range, and an
// infinite value would deny the request.
func (c *callOf) finite(result expr.Expr) Value {
	if c.Language() != MutatingPolicy {
		panic(unsupported(c.name, reasonFraction, "write a MutatingPolicy, which can tell an infinite result, or use whole numbers of built-in kinds"))
	}
	c.has = allOrNil(c.has, expr.Call("math.isFinite", result))
	return Expression(expr.Typed(result, expr.Double), Number)
}

func absolute(c *callOf) Value {
	x := c.args[0].plain
	if !isWhole(c.args[0]) { // the smallest integer has no absolute value
		x = fraction(c.args[0])
	}
	return Expression(expr.Cond(expr.Binary("<", x, expr.Int(0)), expr.Minus(x), x),
		Type{kinds: isNumber, whole: isWhole(c.args[0])})
}

func rounded(name string) func(*callOf) Value {
	return func(c *callOf) Value {
		// -0.0 and 1e+20, among others
		return Expression(expr.Typed(expr.Call(name, fraction(c.args[0])), expr.Double), Number)
	}
}

func round(c *callOf) Value {
	n := c.integer(1, "a number of digits")
	if n < 0 {
		panic(unsupported(c.name, reasonDynamic, "give a number of digits that is not negative"))
	}
	return c.finite(expr.Call("math.round", fraction(c.args[0]), expr.Int(n)))
}

func (c *callOf) sumOf(kind string) expr.Expr {
	list := c.args[0]
	if list.Elements().quantity {
		panic(c.quantities())
	}
	if !list.Elements().is(isNumber) {
		panic(unsupported(c.name, reasonUnknownType, "its elements have to be numbers"))
	}
	name := c.fresh(list.name)
	c.has = allOrNil(c.has, expr.Binary(">", expr.Method(list.plain, "size"), expr.Int(0)))
	return expr.Method(expr.Macro(list.plain, "map", name, expr.Call(kind, list.element(name).plain)), "sum")
}

func sum(c *callOf) Value {
	kind, of := "double", Number
	if c.args[0].Elements().whole {
		kind, of = "int", Whole
	}
	if of.whole {
		return Expression(c.sumOf(kind), of)
	}
	return c.finite(c.sumOf(kind))
}

func average(c *callOf) Value {
	total := expr.Binary("/", c.sumOf("double"), expr.Call("double", expr.Method(c.args[0].plain, "size")))
	if c.args[0].Elements().whole {
		return Expression(total, Number)
	}
	return c.finite(total)
}

// Times as servers write them, and durations. CEL fails for invalid dates and for more than 292 years: 16
// parts, at most two of them hours, are less.
const (
	utcTime = `^([1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|` +
		`([1-9][0-9](0[48]|[2468][048]|[13579][26])|2000)-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$`
	durationText = `^[-+]?(([0-9]{1,6}([.][0-9]*)?|[.][0-9]+)[hm]|([0-9]{1,8}([.][0-9]*)?|[.][0-9]+)m?s|([0-9]{1,12}([.][0-9]*)?|[.][0-9]+)[nuµμ]s){1,16}$`
	threeHours   = `h.*h.*h`
)

func (c *callOf) time(i int) expr.Expr {
	text := c.args[i].plain
	if _, ok := expr.StringOf(text); !ok {
		c.Note("times have to be in UTC and without fractions of a second, as servers write them")
		c.has = allOrNil(c.has, expr.Method(text, "matches", expr.String(utcTime)))
	}
	return expr.Call("timestamp", text)
}

func (c *callOf) duration(i int) expr.Expr {
	text := c.args[i].plain
	if _, ok := expr.StringOf(text); !ok {
		c.has = allOrNil(c.has, isDuration(text))
	}
	return expr.Call("duration", text)
}

func timeAdd(c *callOf) Value {
	if _, ok := expr.StringOf(c.args[0].plain); !ok { // the year 10000 is invalid
		c.has = allOrNil(c.has, expr.Binary("<", c.args[0].plain, expr.String("97")))
	}
	return Expression(expr.Call("string", expr.Binary("+", c.time(0), c.duration(1))), Text)
}

func timeTruncate(c *callOf) Value {
	return Expression(expr.Call("string", expr.Call("time.truncate", c.time(0), c.duration(1))), Text)
}

func timeBetween(c *callOf) Value {
	t, from, to := c.time(0), c.time(1), c.time(2)
	return Expression(expr.And(expr.Binary(">", t, from), expr.Binary("<", t, to)), Boolean)
}
