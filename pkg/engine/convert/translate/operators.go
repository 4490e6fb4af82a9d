package translate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// compare translates an operator; it is false for a null key.
func (c *condition) compare(key, value Value) expr.Expr {
	fixed, constant := value.Literal()
	if literal, ok := key.Literal(); ok && constant {
		return expr.Bool(c.operator.Holds(nil, literal, fixed))
	}
	if m := key.missing; constant && m != nil && m.of != nil {
		holds := func(replaced any) bool { return c.operator.Holds(nil, replaced, fixed) }
		switch {
		case !holds(m.value) && !slices.ContainsFunc(m.also, holds): // no default is necessary
			return c.compare(m.of.forgiving(), value)
		case m.also == nil:
			return expr.Or(expr.Not(m.unless), c.compare(m.of.certain(), value))
		}
	}
	if constant && key.missing != nil && key.missing.also == nil && fixed == key.missing.value {
		switch c.operator { // other types than the operator's
		case match.Equal, match.Equals:
			return expr.Not(key.missing.unless)
		case match.NotEqual, match.NotEquals:
			return key.missing.unless
		}
	}
	switch c.operator {
	case match.In, match.AnyIn, match.AllIn, match.NotIn, match.AnyNotIn, match.AllNotIn:
		return c.member(key, value)
	case match.NotEqual, match.NotEquals:
		there := key
		there.has, there.opt = nil, nil
		equal := c.related(there, value)
		if same, ok := expr.EqualTo(equal, key.plain); ok && key.opt != nil {
			return expr.NotEqual(key.Or(same), same)
		}
		return expr.And(key.has, expr.Not(equal))
	}
	return c.related(key, value)
}

// asText is a policy literal as an operator parses it: a string, a number, a duration, a quantity.
type asText struct {
	text     string
	duration bool // such as 1h
	quantity bool // such as 2Gi, or 5
	number   *float64
	seconds  *float64 // for comparison with durations
}

func parse(text string) asText {
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

// form is a condition for values of some kinds; a total form does not fail for other values.
type form struct {
	of    kinds
	total bool
	holds func(plain expr.Expr) expr.Expr
}

// dispatch selects the form for the key's kind; for other kinds the condition is false.
func dispatch(key Value, forms ...form) expr.Expr {
	possible := slices.DeleteFunc(slices.Clone(forms), func(f form) bool { return !key.typ.can(f.of) })
	if len(possible) == 0 {
		return expr.Bool(false)
	}
	if len(possible) == 1 && (key.typ.is(possible[0].of) || possible[0].total) {
		return key.test(possible[0].of, possible[0].holds)
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

// related translates an operator that relates a key to one value: == or an order.
func (c *condition) related(key, value Value) expr.Expr {
	op, onlyDurations := relationOf(c.operator)
	literal, ok := value.Literal()
	var want asText
	switch v := literal.(type) {
	case string:
		want = parse(v)
		if d, err := time.ParseDuration(v); err == nil && (want.duration || onlyDurations) {
			s := d.Seconds()
			want.seconds = &s
		}
	case int64, float64:
		n, _ := jmespath.Number(v)
		want.number, want.seconds = &n, &n
	case nil:
		if !ok {
			return c.relatedValues(op, onlyDurations, key, value)
		}
		return expr.Bool(false)
	default:
		return dispatch(key, form{of: kindsOf(value.plain), total: true, holds: func(e expr.Expr) expr.Expr {
			return expr.And(expr.Bool(op == "=="), expr.Binary("==", e, value.plain))
		}})
	}
	var forms []form
	n := want.number
	if op != "==" && (want.duration || onlyDurations) {
		n = want.seconds
	}
	if n != nil {
		forms = append(forms, form{of: isNumber, total: op == "==", holds: func(e expr.Expr) expr.Expr {
			return expr.Binary(op, e, numberOf(*n))
		}})
	}
	_, isText := literal.(string)
	return dispatch(key, append(forms, form{
		of: isString, total: op == "==" && isText && !selector.HasWildcard(want.text) && !want.duration &&
			!want.quantity,
		holds: func(e expr.Expr) expr.Expr { return want.relates(e, op, onlyDurations, key.typ.quantity) },
	})...)
}

// relates compares a string with a policy's amount: as durations, quantities, numbers or versions, and as a
// pattern. sure means that it is a quantity.
func (want *asText) relates(e expr.Expr, op string, onlyDurations, sure bool) expr.Expr {
	exact, none := op == "==", expr.Bool(false)
	isQuantity := want.quantity && want.text != "" && !onlyDurations
	if sure && isQuantity && (exact || !want.duration) {
		return quantityIs(e, op, want.text, true)
	}
	duration := none
	if want.seconds != nil {
		duration = durationIs(e, op, *want.seconds)
	}
	switch {
	case onlyDurations && want.seconds == nil:
		return none
	case onlyDurations: // where 0 is a duration too
		return expr.Or(duration,
			expr.And(expr.Equal(e, expr.String("0")), expr.Bool(holdsFor(op, 0, *want.seconds))))
	case isQuantity && want.duration:
		return expr.Or(duration, expr.And(expr.Not(isDuration(e)), quantityIs(e, op, want.text, false)))
	case isQuantity:
		return quantityIs(e, op, want.text, false)
	case exact && want.seconds == nil:
		return asPattern(e, want.text)
	case exact:
		return duration
	case want.number != nil:
		return expr.Or(duration, expr.And(expr.Method(e, "matches", expr.String(decimal+`|^[-+]?(?i:inf|infinity)$`)), expr.Binary(op, expr.Call("double", e), expr.Float(*want.number))))
	}
	if _, err := semver.Parse(want.text); err == nil {
		return expr.And(expr.Call("isSemver", e),
			ordered(op, expr.Call("semver", e), expr.Call("semver", expr.String(want.text))))
	}
	return expr.Or(duration, want.secondsIs(e, op))
}

// secondsIs compares a numeric string with a policy's duration: Kyverno truncates to seconds, and uses 0 or
// -1 for an infinite number. Other overflowing numbers and durations that are not positive are unsupported.
func (want *asText) secondsIs(e expr.Expr, op string) expr.Expr {
	if want.seconds == nil || *want.seconds <= 0 {
		return expr.Bool(false)
	}
	bound, most := math.Ceil(*want.seconds), float64(math.MaxInt64/int64(time.Second))
	if op == ">" || op == "<=" {
		bound = math.Floor(*want.seconds) + 1
	}
	number := expr.Call("double", e)
	if op[0] == '>' {
		return expr.And(expr.Method(e, "matches", expr.String(decimal)), expr.Binary(">=", number, expr.Float(bound)), expr.Binary("<=", number, expr.Float(most)))
	}
	return expr.Or(expr.Method(e, "matches", expr.String("^[-+]?(?i:inf|infinity)$")),
		expr.And(expr.Method(e, "matches", expr.String(decimal)), expr.Binary("<", number, expr.Float(bound)), expr.Binary(">=", number, expr.Float(-most))))
}

// quantityIs compares a quantity string, after checking that it is a quantity unless sure.
func quantityIs(e expr.Expr, op, text string, sure bool) expr.Expr {
	order := ordered
	if op == "==" || op == "!=" {
		order = expr.Binary
	}
	holds := order(op, expr.Call("quantity", e), expr.Call("quantity", expr.String(text)))
	if sure {
		return holds
	}
	return expr.And(expr.Call("isQuantity", e), holds)
}

// isDuration checks that a string is a duration; 0 is not a duration next to other amounts.
func isDuration(e expr.Expr) expr.Expr {
	return expr.And(expr.Method(e, "matches", expr.String(durationText)), expr.Not(expr.Method(e, "matches", expr.String(threeHours))))
}

// durationIs compares a duration string with a number of seconds.
func durationIs(e expr.Expr, op string, seconds float64) expr.Expr {
	text := time.Duration(seconds * float64(time.Second)).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return expr.And(isDuration(e),
		expr.Binary(op, expr.Call("duration", e), expr.Call("duration", expr.String(text))))
}

// asPattern compares a string with a wildcard pattern, which never matches a quantity.
func asPattern(e expr.Expr, pattern string) expr.Expr {
	holds := Wildcard(e, pattern)
	if !selector.HasWildcard(pattern) ||
		pattern[0] != '*' && pattern[0] != '?' && !strings.ContainsRune("+-.0123456789", rune(pattern[0])) {
		return holds
	}
	return expr.And(holds, expr.Not(expr.Call("isQuantity", e)))
}

// ordered compares two quantities or versions.
func ordered(op string, a, b expr.Expr) expr.Expr {
	return expr.Binary(op, expr.Method(a, "compareTo", b), expr.Int(0))
}

func holdsFor(op string, a, b float64) bool {
	return map[string]bool{">": a > b, ">=": a >= b, "<": a < b, "<=": a <= b}[op]
}

// relationOf is the CEL form of an operator.
func relationOf(o match.Operator) (op string, onlyDurations bool) {
	name, onlyDurations := strings.CutPrefix(string(o), "Duration")
	op = map[string]string{
		"GreaterThan": ">", "GreaterThanOrEquals": ">=", "LessThan": "<",
		"LessThanOrEquals": "<=",
	}[name]
	return cmp.Or(op, "=="), onlyDurations
}

// relatedValues compares two values that are known only at evaluation.
func (c *condition) relatedValues(op string, onlyDurations bool, key, value Value) expr.Expr {
	switch {
	case op == "==":
		if key.typ.can(isString) && value.typ.can(isString) {
			c.Note("two values are compared as they are written; Kyverno also takes the second one for a pattern, or both for amounts")
		}
		return expr.And(key.has, expr.Equal(key.plain, value.plain))
	case key.typ.is(isNumber) && value.typ.is(isNumber):
		return expr.And(key.has, expr.Binary(op, key.plain, value.plain))
	case key.typ.quantity && value.typ.quantity && !onlyDurations:
		text := func(v Value) expr.Expr { return expr.Call("quantity", expr.Call("string", v.plain)) }
		return expr.And(key.has, ordered(op, text(key), text(value)))
	}
	panic(unsupported("the operator "+string(c.operator)+" with two values that are no numbers",
		reasonDynamic, "compare with a constant"))
}

// member translates the In operators.
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

// memberOfAny translates the operators for a key of unknown type, which is checked at evaluation. A map is
// never a member, even in a list; with pattern members, which may match a list's JSON in Kyverno, a list must
// have only scalars.
func (c *condition) memberOfAny(key Value, m members) expr.Expr {
	holds := within(c.Scope, key.name, func(name string) expr.Expr { // so that it is written once
		v := expr.Name(name)
		one := c.memberOfScalar(Expression(expr.Call("string", v), Text), m)
		elements, scalars := Any, expr.Bool(true)
		if !m.listed || slices.ContainsFunc(m.all, selector.HasWildcard) {
			e := c.fresh("elements")
			elements, scalars = Type{kinds: isScalar}, expr.Macro(v, "all", e, isOf(expr.Name(e), isScalar))
		}
		several := c.memberOfList(Expression(v, ListOf(elements)), m)
		return expr.Macro(expr.List(key.plain), "exists", name,
			expr.Or(expr.And(isOf(v, isScalar), one), expr.And(isOf(v, isList), scalars, several)))
	})
	return expr.And(key.has, holds)
}

// members are the members of a policy value.
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
	if low, high, outside, ok := pattern.ParseRange(text); ok && !outside && m.operator != match.In &&
		m.operator != match.NotIn {
		m.inside = func(v Value) expr.Expr { return scalarPattern(v, low+"-"+high) }
		m.outside = func(v Value) expr.Expr { return scalarPattern(v, low+"!-"+high) }
	}
}

func negative(o match.Operator) bool {
	return o == match.NotIn || o == match.AnyNotIn || o == match.AllNotIn
}

// among is the condition that a value is one of the members; wildcards count unless old is set.
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
	if !v.typ.is(isString) && !v.typ.is(isNumber) && !v.typ.is(isBool) {
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

// memberLiteral is a member as a literal of the value's type; ok is false if no such value exists.
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

// holdsFor is the condition that a single value is found. A policy value without members satisfies neither an
// operator nor its negation.
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
		_ = Try(func() { holds = expr.Or(asPattern, m.inside(v)) })
		return holds, true
	case !m.valid:
		return asPattern, false
	}
	return expr.Or(asPattern, m.among(v, true)), true
}

func (c *condition) memberOfScalar(key Value, m members) expr.Expr {
	holds := func(plain expr.Expr) expr.Expr {
		found, valid := m.holdsFor(Expression(plain, key.typ))
		switch {
		case !negative(c.operator):
			return found
		case !valid:
			return expr.Bool(false)
		}
		return expr.Not(found)
	}
	if key.typ.is(isString) && m.listed && negative(c.operator) && len(m.all) > 0 &&
		!selector.HasWildcard(m.all[0]) && key.opt != nil {
		return holds(key.Or(expr.String(m.all[0]))) // the default is a member
	}
	return key.test(key.typ.kinds, holds)
}

// memberOfList translates the operators for a list of keys.
func (c *condition) memberOfList(key Value, m members) expr.Expr {
	old := c.operator == match.In || c.operator == match.NotIn
	found := func(item Value) expr.Expr {
		if item.typ.is(isScalar) {
			return m.among(item, old)
		}
		return expr.And(isOf(item.plain, isScalar), m.among(Expression(item.plain, Type{kinds: isScalar}), old))
	}
	missing := func(item Value) expr.Expr { return expr.Not(found(item)) }
	if !key.Elements().is(isScalar) && key.Elements().kinds != 0 {
		panic(unsupported("the operator "+string(c.operator), "the key is a list of objects",
			"ask for a field of them"))
	}
	if key.holes {
		panic(unsupported("the operator "+string(c.operator), "the list has nulls that CEL's has not",
			"leave out what is absent"))
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
	return c.membersOf(key, found, missing)
}

// membersOf applies the operator's condition to the elements of a list.
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

// isField is the condition that an object has a field, if the policy searches the list of its keys.
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

// memberOfValue searches a list, or the keys of a map, that is known only at evaluation.
func (c *condition) memberOfValue(key, value Value) expr.Expr {
	construct := "the operator " + string(c.operator)
	if holds, ok := c.isField(key, value); ok {
		return holds
	}
	if !value.typ.is(isList) {
		panic(unsupported(construct+" with a value that is no list", reasonDynamic,
			"a text may be a list in JSON; use split"))
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
