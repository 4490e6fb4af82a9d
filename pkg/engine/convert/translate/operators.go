package translate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// compare translates an operator, which is false for a key that is null.
func (c *condition) compare(key, value Value) expr.Expr {
	fixed, constant := value.Literal()
	if literal, ok := key.Literal(); ok && constant {
		return expr.Bool(c.operator.Holds(nil, literal, fixed))
	}
	if text, ok := expr.StringOf(key.plain); ok && constant {
		return expr.And(key.has, expr.Bool(c.operator.Holds(nil, text, fixed)))
	}
	if constant && key.missing != nil && key.missing.of != nil {
		if c.operator.Holds(nil, key.missing.value, fixed) {
			return expr.Or(expr.Not(key.missing.unless), c.compare(key.missing.of.certain(), value))
		}
		return c.compare(key.missing.of.forgiving(), value)
	}
	if constant && key.missing != nil && fixed == key.missing.value {
		switch c.operator { // what it is else is of another type
		case match.Equal, match.Equals:
			return expr.Not(key.missing.unless)
		case match.NotEqual, match.NotEquals:
			return key.missing.unless
		}
	}
	switch c.operator {
	case match.Equal, match.Equals:
		return c.equals(key, value)
	case match.NotEqual, match.NotEquals:
		return c.notEquals(key, value)
	case match.In, match.AnyIn, match.AllIn, match.NotIn, match.AnyNotIn, match.AllNotIn:
		return c.member(key, value)
	}
	return c.order(key, value)
}

// asText is a literal of a policy as an operator reads it: as a text, a number, a duration, a quantity.
type asText struct {
	text     string
	duration bool // such as 1h
	quantity bool // such as 2Gi, or 5
	number   *float64
}

func read(text string) asText {
	a := asText{text: text}
	_, err := time.ParseDuration(text)
	a.duration = err == nil && text != "0"
	_, err = jmespath.ParseQuantity(text)
	a.quantity = err == nil
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == n {
		a.number = &n
	}
	return a
}

func numberOf(n float64) expr.Expr {
	if n == float64(int64(n)) {
		return expr.Int(int64(n))
	}
	return expr.Float(n)
}

// form is a condition for values of some kinds; total ones are no error for other values.
type form struct {
	of    kinds
	total bool
	holds func(plain expr.Expr) expr.Expr
}

// dispatch asks a value in the form that is for its kind; of another kind, the condition is false. With a
// default, for which the condition is false, it needs no test that the value is there.
func dispatch(key Value, def expr.Expr, forms ...form) expr.Expr {
	possible := slices.DeleteFunc(slices.Clone(forms), func(f form) bool { return !key.typ.can(f.of) })
	if len(possible) == 0 {
		return expr.Bool(false)
	}
	if len(possible) == 1 && (key.typ.is(possible[0].of) || possible[0].total) && (key.opt != nil || key.short != nil) && def != nil {
		holds := possible[0].holds(def)
		if always, constant := expr.BoolOf(holds); !always || !constant { // one of a default was chosen to be false
			return possible[0].holds(key.Or(def))
		}
	}
	var out []expr.Expr
	for _, f := range possible {
		holds := f.holds(key.plain)
		if !key.typ.is(f.of) && !f.total {
			holds = expr.And(isOf(key.plain, f.of&key.typ.all()), holds)
		}
		out = append(out, holds)
	}
	return expr.And(key.has, expr.Or(out...))
}

func (c *condition) equals(key, value Value) expr.Expr {
	literal, ok := value.Literal()
	if !ok {
		return c.equalValues(key, value)
	}
	is := func(e expr.Expr) expr.Expr { return expr.Equal(e, value.plain) }
	switch v := literal.(type) {
	case nil:
		return expr.Bool(false)
	case string:
		return c.equalsText(key, read(v))
	case int64, float64:
		n, _ := jmespath.Number(v)
		return dispatch(key, nil, form{of: isNumber, total: true, holds: is},
			form{of: isString, holds: func(e expr.Expr) expr.Expr { return durationIs(e, "==", n) }})
	case bool:
		return dispatch(key, expr.Bool(!v), form{of: isBool, total: true, holds: is})
	case []any:
		return dispatch(key, nil, form{of: isList, total: true, holds: is})
	case map[string]any:
		return dispatch(key, nil, form{of: isMap, total: true, holds: is})
	}
	panic(unsupported("the value", reasonUnknownType, ""))
}

// isDuration asks whether a text is a duration; 0 is none beside other amounts.
func isDuration(e expr.Expr) expr.Expr {
	return expr.And(expr.Method(e, "matches", expr.String(durationText)), expr.Not(expr.Method(e, "matches", expr.String(threeHours))))
}

// durationIs compares a text that is a duration with a number of seconds.
func durationIs(e expr.Expr, op string, seconds float64) expr.Expr {
	text := time.Duration(seconds * float64(time.Second)).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return expr.And(isDuration(e), expr.Binary(op, expr.Call("duration", e), expr.Call("duration", expr.String(text))))
}

// equalsText compares with a text: as durations, quantities, a pattern.
func (c *condition) equalsText(key Value, want asText) expr.Expr {
	text := form{of: isString, holds: func(e expr.Expr) expr.Expr {
		var forms []expr.Expr
		amount := expr.Equal(expr.Call("quantity", e), expr.Call("quantity", expr.String(want.text)))
		if key.typ.quantity && want.quantity && want.text != "" {
			return amount
		}
		if want.duration {
			d, _ := time.ParseDuration(want.text)
			forms = append(forms, durationIs(e, "==", d.Seconds()))
		}
		if want.quantity && want.text != "" {
			same := expr.And(expr.Call("isQuantity", e), amount)
			if want.duration {
				same = expr.And(expr.Not(isDuration(e)), same)
			}
			forms = append(forms, same)
		}
		if len(forms) == 0 {
			return c.pattern(e, want.text)
		}
		return expr.Or(forms...)
	}}
	text.total = !selector.HasWildcard(want.text) && !want.duration && !want.quantity
	def := expr.String("")
	if selector.MatchWildcard(want.text, "") {
		def = nil
		if want.text == "" {
			def = expr.String("-")
		}
	}
	number := form{of: isNumber, total: true, holds: func(e expr.Expr) expr.Expr {
		if want.number == nil {
			return expr.Bool(false)
		}
		return expr.Equal(e, numberOf(*want.number))
	}}
	if want.number == nil {
		return dispatch(key, def, text)
	}
	return dispatch(key, def, text, number)
}

// pattern compares a text with a wildcard pattern, which no quantity matches.
func (c *condition) pattern(e expr.Expr, pattern string) expr.Expr {
	holds := Wildcard(e, pattern)
	if !selector.HasWildcard(pattern) || pattern[0] != '*' && pattern[0] != '?' && !strings.ContainsRune("+-.0123456789", rune(pattern[0])) {
		return holds
	}
	return expr.And(holds, expr.Not(expr.Call("isQuantity", e)))
}

func (c *condition) notEquals(key, value Value) expr.Expr {
	if same, ok := expr.StringOf(value.plain); ok && value.lit != nil && (key.typ.is(isString) || key.typ.kinds == 0) && (key.opt != nil || key.short != nil) {
		if simple := read(same); !selector.HasWildcard(same) && !simple.duration && !simple.quantity {
			return expr.NotEqual(key.Or(value.plain), value.plain)
		}
	}
	there := key
	there.has, there.short, there.opt = nil, nil, nil
	return expr.And(key.has, expr.Not(c.equals(there, value)))
}

// equalValues compares two values that are both known only when the policy is evaluated.
func (c *condition) equalValues(key, value Value) expr.Expr {
	if key.typ.can(isString) && value.typ.can(isString) {
		c.Note("two values are compared as they are written; Kyverno also takes the second one for a pattern, or both for amounts")
	}
	return expr.And(key.has, expr.Equal(key.plain, value.plain))
}

// order translates the comparisons of numbers, quantities, durations and versions.
func (c *condition) order(key, value Value) expr.Expr {
	op, onlyDurations := orderOf(c.operator)
	literal, ok := value.Literal()
	if !ok {
		return c.orderValues(op, onlyDurations, key, value)
	}
	var want asText
	var seconds *float64
	switch v := literal.(type) {
	case string:
		want = read(v)
		if d, err := time.ParseDuration(v); err == nil && (want.duration || onlyDurations) {
			s := d.Seconds()
			seconds = &s
		}
	case int64, float64:
		n, _ := jmespath.Number(v)
		want.number, seconds = &n, &n
	default:
		return expr.Bool(false)
	}
	forms := amountForms(op, want, seconds, onlyDurations)
	def := expr.Expr(nil)
	if key.typ.is(isNumber) {
		def = falseNumber(op, want, seconds)
	} else if key.typ.is(isString) && !key.typ.quantity {
		def = expr.String("")
	}
	if key.typ.quantity && !onlyDurations {
		return quantityOrder(key, op, want, forms)
	}
	return dispatch(key, def, forms...)
}

// quantityOrder compares a field that is a quantity, so that nobody needs to ask whether it is one.
func quantityOrder(key Value, op string, want asText, forms []form) expr.Expr {
	if !want.quantity || want.duration {
		return dispatch(key, nil, forms...)
	}
	q := expr.Call("quantity", expr.String(want.text))
	text := form{of: isString, holds: func(e expr.Expr) expr.Expr {
		amount := expr.Call("quantity", e)
		if method := map[string]string{">": "isGreaterThan", "<": "isLessThan"}[op]; method != "" {
			return expr.Method(amount, method, q)
		}
		return ordered(op, amount, q)
	}}
	forms = slices.DeleteFunc(slices.Clone(forms), func(f form) bool { return f.of == isString })
	return dispatch(key, nil, append([]form{text}, forms...)...)
}

// ordered compares two quantities or two versions.
func ordered(op string, a, b expr.Expr) expr.Expr {
	return expr.Binary(op, expr.Method(a, "compareTo", b), expr.Int(0))
}

// holdsFor reports whether a comparison of two numbers holds.
func holdsFor(op string, a, b float64) bool {
	return map[string]bool{">": a > b, ">=": a >= b, "<": a < b, "<=": a <= b}[op]
}

// falseNumber is a number for which a comparison does not hold: 0 if that will do.
func falseNumber(op string, want asText, seconds *float64) expr.Expr {
	switch n := cmp.Or(want.number, seconds); {
	case n == nil:
	case !holdsFor(op, 0, *n):
		return expr.Int(0)
	case op == ">" || op == "<":
		return numberOf(*n)
	}
	return nil
}

// orderOf is how CEL writes an operator that orders.
func orderOf(o match.Operator) (op string, onlyDurations bool) {
	name, onlyDurations := strings.CutPrefix(string(o), "Duration")
	return map[string]string{"GreaterThan": ">", "GreaterThanOrEquals": ">=", "LessThan": "<", "LessThanOrEquals": "<="}[name], onlyDurations
}

// amountForms are the forms of a key that can be compared with an amount of a policy.
func amountForms(op string, want asText, seconds *float64, onlyDurations bool) []form {
	var forms []form
	n := want.number
	if want.duration || onlyDurations {
		n = seconds
	}
	if n != nil {
		forms = append(forms, form{of: isNumber, holds: func(e expr.Expr) expr.Expr { return expr.Binary(op, e, numberOf(*n)) }})
	}
	text := func(e expr.Expr) expr.Expr {
		var all []expr.Expr
		if seconds != nil {
			all = append(all, durationIs(e, op, *seconds))
		}
		if onlyDurations {
			if seconds != nil { // where 0 is one too
				return expr.Or(append(all, expr.And(expr.Equal(e, expr.String("0")), expr.Bool(holdsFor(op, 0, *seconds))))...)
			}
			return expr.Bool(false)
		}
		rest := textOrder(e, op, want)
		if seconds != nil && want.duration {
			rest = expr.And(expr.Not(isDuration(e)), rest)
		}
		return expr.Or(append(all, rest)...)
	}
	return append(forms, form{of: isString, holds: text})
}

// textOrder compares a text as a quantity, a number or a version.
func textOrder(e expr.Expr, op string, want asText) expr.Expr {
	switch {
	case want.quantity:
		return expr.And(expr.Call("isQuantity", e), ordered(op, expr.Call("quantity", e), expr.Call("quantity", expr.String(want.text))))
	case want.number != nil:
		return expr.And(expr.Method(e, "matches", expr.String(decimal)), expr.Binary(op, expr.Call("double", e), expr.Float(*want.number)))
	}
	if _, err := semver.Parse(want.text); err == nil {
		return expr.And(expr.Call("isSemver", e), ordered(op, expr.Call("semver", e), expr.Call("semver", expr.String(want.text))))
	}
	return expr.Bool(false)
}

func (c *condition) orderValues(op string, onlyDurations bool, key, value Value) expr.Expr {
	switch {
	case key.typ.is(isNumber) && value.typ.is(isNumber):
		return expr.And(key.has, expr.Binary(op, key.plain, value.plain))
	case key.typ.quantity && value.typ.quantity && !onlyDurations:
		text := func(v Value) expr.Expr { return expr.Call("quantity", expr.Call("string", v.plain)) }
		return expr.And(key.has, ordered(op, text(key), text(value)))
	}
	panic(unsupported("the operator "+string(c.operator)+" with two values that are no numbers", reasonDynamic, "compare with a constant"))
}

// member translates the In family.
func (c *condition) member(key, value Value) expr.Expr {
	literal, ok := value.Literal()
	if !ok {
		return c.memberOfValue(key, value)
	}
	if key.typ.is(isMap) {
		return expr.Bool(false)
	}
	m := members{operator: c.operator}
	switch v := literal.(type) {
	case []any:
		m.listed, m.valid, m.texts = true, true, true
		for _, item := range v {
			_, isText := item.(string)
			m.texts = m.texts && isText
			m.all = append(m.all, fmt.Sprint(item))
		}
	case string:
		m.readText(v)
	case bool, int64, float64:
		m.all = []string{fmt.Sprint(v)}
	}
	if key.typ.kinds != 0 && !key.typ.is(isScalar) && !key.typ.is(isList) {
		panic(unsupported("the operator "+string(c.operator), reasonUnknownType, ""))
	}
	switch {
	case key.typ.kinds == 0:
		return c.memberOfAny(key, m)
	case key.typ.is(isList):
		return c.memberOfList(key, m)
	}
	return c.memberOfScalar(key, m)
}

// memberOfAny translates the operators for a key of which nothing is known: it is asked what it is. A map is no member, and
// a list that is not one of scalars is taken for none.
func (c *condition) memberOfAny(key Value, m members) expr.Expr {
	holds := within(c.Scope, key.name, func(name string) expr.Expr { // so that it is written once
		v := expr.Name(name)
		one := c.memberOfScalar(Expression(expr.Call("string", v), Text), m)
		several := c.memberOfList(Expression(v, ListOf(Type{kinds: isScalar})), m)
		e := c.fresh("elements")
		scalars := expr.Macro(v, "all", e, isOf(expr.Name(e), isScalar))
		return expr.Macro(expr.List(key.plain), "exists", name, expr.Or(expr.And(isOf(v, isScalar), one), expr.And(isOf(v, isList), scalars, several)))
	})
	return expr.And(key.has, holds)
}

// members are what a value of a policy has as members.
type members struct {
	operator             match.Operator
	all                  []string
	listed, valid, texts bool
	text                 *string
	inside, outside      func(Value) expr.Expr // of a range
}

func (m *members) readText(text string) {
	m.text = &text
	m.all, m.valid = []string{text}, true
	if json.Valid([]byte(text)) {
		m.all = nil
		m.valid = json.Unmarshal([]byte(text), &m.all) == nil
	}
	if low, high, ok := rangeOf(text); ok && m.operator != match.In && m.operator != match.NotIn {
		m.inside = func(v Value) expr.Expr { return scalarPattern(v, low+"-"+high) }
		m.outside = func(v Value) expr.Expr { return scalarPattern(v, low+"!-"+high) }
	}
}

func negative(o match.Operator) bool {
	return o == match.NotIn || o == match.AnyNotIn || o == match.AllNotIn
}

// among is whether a value is one of the members; wildcards count unless old is set.
func (m members) among(v Value, old bool) expr.Expr {
	var exact []expr.Expr
	var out []expr.Expr
	for _, member := range m.all {
		if !old && selector.HasWildcard(member) {
			out = append(out, Wildcard(textOf(v), member))
			continue
		}
		if literal, ok := memberLiteral(v, member); ok {
			exact = append(exact, literal)
		}
	}
	plain := v.plain
	if v.typ.kinds == 0 && slices.ContainsFunc(m.all, looksScalar) || v.typ.kinds != 0 && !v.typ.is(isString) && !v.typ.is(isNumber) && !v.typ.is(isBool) {
		plain = stringOf(v)
	}
	switch len(exact) {
	case 0:
	case 1:
		out = append([]expr.Expr{expr.Equal(plain, exact[0])}, out...)
	default:
		out = append([]expr.Expr{expr.Binary("in", plain, expr.List(exact...))}, out...)
	}
	return expr.Or(out...)
}

// looksScalar reports whether a text may be that of a number, true or false.
func looksScalar(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil || text == "true" || text == "false"
}

// memberLiteral is a member as a literal of the type of a value; none where no value has this text.
func memberLiteral(v Value, member string) (expr.Expr, bool) {
	switch {
	case v.typ.is(isNumber):
		if n, err := strconv.ParseInt(member, 10, 64); err == nil && strconv.FormatInt(n, 10) == member {
			return expr.Int(n), true
		}
		n, err := strconv.ParseFloat(member, 64)
		return numberOf(n), err == nil && fmt.Sprint(n) == member && !isWhole(v)
	case v.typ.is(isBool):
		b, err := strconv.ParseBool(member)
		return expr.Bool(b), err == nil && strconv.FormatBool(b) == member
	}
	return expr.String(member), true
}

// holdsFor is whether a single value is found. A value of the policy that has no members satisfies neither
// an operator nor its negation.
func (m members) holdsFor(v Value) (holds expr.Expr, valid bool) {
	switch {
	case m.listed:
		return m.among(v, false), true
	case m.text == nil:
		return expr.Bool(false), false
	}
	asPattern := Wildcard(textOf(v), *m.text)
	switch {
	case m.inside != nil:
		holds := expr.Bool(false)
		_ = attempt(func() { holds = expr.Or(asPattern, m.inside(v)) })
		return holds, true
	case !m.valid:
		return asPattern, false
	}
	return expr.Or(asPattern, m.among(v, true)), true
}

func (c *condition) memberOfScalar(key Value, m members) expr.Expr {
	holds := func(plain expr.Expr) expr.Expr {
		out, _ := m.holdsFor(Expression(plain, key.typ))
		return out
	}
	simple := key.typ.is(isString) && (key.opt != nil || key.short != nil)
	found, valid := m.holdsFor(Expression(key.plain, key.typ))
	switch _, constant := expr.BoolOf(found); {
	case negative(c.operator) && !valid:
		return expr.Bool(false)
	case negative(c.operator) && simple && m.listed && len(m.all) > 0 && !selector.HasWildcard(m.all[0]):
		return expr.Not(holds(key.Or(expr.String(m.all[0]))))
	case negative(c.operator):
		found = expr.Not(found)
	case !constant && simple && !slices.ContainsFunc(m.all, func(member string) bool { return selector.MatchWildcard(member, "") }):
		return holds(key.Or(expr.String("")))
	}
	return expr.And(key.has, found)
}

// memberOfList translates the operators for several keys.
func (c *condition) memberOfList(key Value, m members) expr.Expr {
	old := c.operator == match.In || c.operator == match.NotIn
	found := func(item Value) expr.Expr { return m.among(item, old) }
	missing := func(item Value) expr.Expr { return expr.Not(found(item)) }
	if !key.Elements().is(isScalar) && key.Elements().kinds != 0 {
		panic(unsupported("the operator "+string(c.operator), "the key is a list of objects", "ask for a field of them"))
	}
	if key.holes {
		panic(unsupported("the operator "+string(c.operator), "the list has nulls that CEL's has not", "leave out what is absent"))
	}
	switch {
	case m.listed:
		if old && !m.texts {
			return expr.Bool(false)
		}
	case m.text != nil && m.inside != nil:
		found = m.inside
		if c.operator == match.AnyNotIn {
			missing = m.outside
		}
	case m.text != nil:
		if !m.valid || *m.text != "" && json.Valid([]byte(*m.text)) {
			panic(unsupported("the value "+*m.text, "the key may be a list of this one text", "write a list"))
		}
	case len(m.all) == 0 || c.operator != match.AnyIn && c.operator != match.AnyNotIn:
		return expr.Bool(false)
	}
	switch {
	case key.keysOf == nil:
	case c.operator == match.AnyIn:
		return c.keyAmong(*key.keysOf, m)
	case c.operator == match.AllNotIn:
		return expr.And(key.has, expr.Not(c.keyAmong(*key.keysOf, m)))
	}
	return c.membersOf(key, found, missing)
}

// membersOf asks the elements of a list whether they are found, as the operator wants it.
func (c *condition) membersOf(key Value, found, missing func(Value) expr.Expr) expr.Expr {
	switch c.operator {
	case match.AnyIn:
		return c.exists(key, found)
	case match.AnyNotIn, match.NotIn:
		return c.exists(key, missing)
	case match.AllIn, match.In:
		return expr.And(key.has, c.every(key, found))
	}
	return expr.And(key.has, expr.Not(c.exists(key, found)))
}

// keyAmong is whether a map has one of the members as a key.
func (c *condition) keyAmong(of Value, m members) expr.Expr {
	var out []expr.Expr
	object := of.Or(expr.Map())
	for _, member := range m.all {
		if selector.HasWildcard(member) {
			k := c.fresh("keys")
			out = append(out, expr.Macro(object, "exists", k, Wildcard(expr.Name(k), member)))
			continue
		}
		out = append(out, expr.Binary("in", expr.String(member), object))
	}
	return expr.Or(out...)
}

// isField is the condition that an object has a field, which is asked for in the list of its keys.
func (c *condition) isField(key, value Value) (holds expr.Expr, ok bool) {
	literal, _ := key.Literal()
	name, isText := literal.(string)
	if value.keysOf == nil || !isText || selector.HasWildcard(name) || !value.keysOf.typ.isStruct() {
		return nil, false
	}
	has := expr.And(value.keysOf.field(name).has)
	switch c.operator {
	case match.AnyIn, match.AllIn, match.In:
		return has, true
	}
	return expr.Not(has), true
}

// memberOfValue compares with a list, or the keys of a map, that is known only when the policy is evaluated.
func (c *condition) memberOfValue(key, value Value) expr.Expr {
	construct := "the operator " + string(c.operator)
	if holds, ok := c.isField(key, value); ok {
		return holds
	}
	if !value.typ.is(isList) {
		panic(unsupported(construct+" with a value that is no list", reasonDynamic, "a text may be a list in JSON; use split"))
	}
	if !value.Elements().is(isString) {
		panic(unsupported(construct, reasonUnknownType, "the elements of the value have to be texts"))
	}
	c.Note("two values are compared as they are written; Kyverno also takes either one for a pattern")
	of := value.plain
	if value.keysOf != nil {
		of = value.keysOf.plain
	}
	found := func(item Value) expr.Expr { return expr.Binary("in", textOf(item), of) }
	if key.typ.is(isList) {
		if !key.Elements().is(isScalar) && key.Elements().kinds != 0 || key.holes {
			panic(unsupported(construct, reasonUnknownType, "the elements of the key have to be texts"))
		}
		return c.membersOf(key, found, func(item Value) expr.Expr { return expr.Not(found(item)) })
	}
	if !key.typ.is(isScalar) && key.typ.kinds != 0 {
		panic(unsupported(construct, reasonUnknownType, ""))
	}
	key = key.needs(isScalar)
	holds := found(key)
	if pattern, ok := expr.StringOf(key.plain); ok && selector.HasWildcard(pattern) {
		holds = c.exists(value, func(item Value) expr.Expr { return Wildcard(textOf(item), pattern) })
	}
	if negative(c.operator) {
		holds = expr.Not(holds)
	}
	return expr.And(key.has, holds)
}
