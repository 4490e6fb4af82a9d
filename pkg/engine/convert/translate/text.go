package translate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// Value translates a policy value with {{ }} variables in its strings and keys; variables.Resolve has to
// resolve references $( ) before. A string with only one variable gets the variable's value, of any type. A
// value without variables is a constant.
func (s *Scope) Value(doc any) Value {
	switch v := doc.(type) {
	case string:
		return s.Text(v)
	case []any:
		return s.list(v)
	case map[string]any:
		return s.object(v)
	}
	return Constant(doc)
}

func (s *Scope) list(doc []any) Value {
	v, fixed := Value{}, make([]any, len(doc))
	items, constant := make([]expr.Expr, len(doc)), true
	for i, item := range doc {
		member := s.Value(item)
		literal, ok := member.Literal()
		fixed[i], constant = literal, constant && ok && member.strict == nil
		items[i], v.strict = member.Or(expr.Null()), allOrNil(v.strict, member.strict)
		v.members = append(v.members, member)
	}
	if constant {
		return Constant(fixed)
	}
	v.plain, v.lenient, v.typ = expr.List(items...), v.strict, ListOf(typeOfAll(v.members))
	return v.settled()
}

func (s *Scope) object(doc map[string]any) Value {
	v, fixed := Value{typ: Type{kinds: isMap}}, make(map[string]any, len(doc))
	entries, constant := make([]expr.Entry, 0, len(doc)), true
	for _, key := range slices.Sorted(maps.Keys(doc)) {
		name := s.Text(key)
		member := s.Value(doc[key])
		literal, ok := member.Literal()
		text, isText := name.lit, false
		if text != nil {
			key, isText = (*text).(string)
		}
		fixed[key], constant = literal, constant && ok && isText && member.strict == nil
		entries = append(entries, expr.Entry{Key: name.plain, Value: member.Or(expr.Null())})
		v.strict = allOrNil(v.strict, name.strict, name.has, member.strict)
	}
	if constant {
		return Constant(fixed)
	}
	v.plain, v.lenient = expr.Map(entries...), v.strict
	return v.settled()
}

// Text translates a string with variables.
func (s *Scope) Text(text string) Value {
	segments := must(variables.Split(text))
	if len(segments) == 1 && segments[0].Variable != nil {
		return s.variable(segments[0].Variable)
	}
	v := Value{typ: Name}
	sum := expr.String("")
	constant := true
	for i, segment := range segments {
		part := Constant(segment.Text)
		if segment.Variable != nil {
			part = s.inserting(s.variable(segment.Variable), s.AsText)
		}
		v.typ.form = min(v.typ.form, part.typ.Form())
		constant = constant && part.lit != nil && part.strict == nil
		v.strict = allOrNil(v.strict, part.strict)
		if sum = expr.Binary("+", sum, part.plain); i == 0 {
			sum = part.plain
		}
	}
	if fixed, ok := expr.StringOf(sum); ok && constant {
		return Constant(fixed)
	}
	v.plain, v.lenient = sum, v.strict
	return v.settled()
}

// inserting is a value as a string within another string; asText converts values that are not strings.
func (s *Scope) inserting(v Value, asText func(Value) expr.Expr) Value {
	if value, ok := v.Literal(); ok {
		text, isText := value.(string)
		if !isText {
			text = must(jmespath.ToJSON(value))
		}
		return Constant(text)
	}
	out := Value{typ: Text, strict: v.strict, lenient: v.lenient}
	if v.typ.is(isScalar) { // other values become JSON
		out.typ.form = v.typ.Form()
	}
	switch {
	case v.typ.is(isString):
		out.plain = v.plain
	default:
		out.plain = asText(v)
	}
	if v.has != nil && !expr.Same(v.has, v.strict) {
		if v.typ.is(isString) {
			out.plain = v.Or(expr.String("null"))
		} else {
			out.plain = expr.Cond(v.has, out.plain, expr.String("null"))
		}
	}
	return out
}

// AsText is a value as a string within another one. Kyverno writes 1e-07, json.marshal() 1e-7.
func (s *Scope) AsText(v Value) expr.Expr {
	text := s.encoded(v)
	if v.typ.is(isNumber) && v.mayHaveFraction() {
		return expr.Call("regex.replace", text, expr.String("e-([7-9])$"), expr.String(`e-0\1`))
	}
	return text
}

// encoded is a value as a string or, if it is not one, as JSON. CEL's string() writes 1e+20 and fails on
// lists and maps, so json.marshal() writes values that may be one. Kyverno's numbers are doubles.
func (s *Scope) encoded(v Value) expr.Expr {
	switch {
	case expr.KindOf(v.plain) == expr.Text:
		return v.plain
	case v.typ.is(isScalar) && !v.mayHaveFraction():
		return stringOf(v)
	case s.options.Language != MutatingPolicy && v.mayHaveFraction():
		panic(unsupported("a number in a text", reasonFraction, "write a MutatingPolicy, or a field that is a number"))
	case s.options.Language != MutatingPolicy:
		panic(unsupported("a value that may be a list or an object in a text", reasonOnlyPolicies, "write a MutatingPolicy; for a custom resource, "+GiveDefinition))
	case v.typ.is(isNumber):
		return expr.Call("json.marshal", fraction(v))
	case v.typ.kinds != 0 && v.typ.holdsFractions():
		panic(unsupported("a list or an object of numbers in a string", reasonFraction, "write the numbers one by one"))
	case v.typ.can(isString):
		if v.typ.kinds == 0 {
			s.Note("in strings, integers beyond 2^53 and fractions below 0.000001 of a value of unknown type are written otherwise")
		}
		return expr.Cond(isOf(v.plain, isString), expr.Call("string", v.plain), expr.Call("json.marshal", v.plain))
	}
	return expr.Call("json.marshal", v.plain)
}

// stringOf formats a scalar as a string.
func stringOf(v Value) expr.Expr {
	if expr.KindOf(v.plain) == expr.Text {
		return v.plain
	}
	return expr.Call("string", v.plain)
}

// Placeholders for inserted values in expressions: names or indexes that nobody writes.
const (
	insertedName  = "zq7xq"
	insertedFirst = 770_770_000
)

// variable translates the expression between {{ and }}.
func (s *Scope) variable(pieces []variables.Segment) Value {
	if len(pieces) == 1 && pieces[0].Variable == nil {
		if pieces[0].Text == "@" {
			return s.here()
		}
		return s.Query(pieces[0].Text)
	}
	var b strings.Builder
	inner := s.Child()
	inner.bound = s.bound
	inner.inserts, inner.depth = nil, 0
	var guard expr.Expr
	for _, piece := range pieces {
		if piece.Variable == nil {
			b.WriteString(piece.Text)
			continue
		}
		v := s.variable(piece.Variable)
		if text, ok := v.lit, v.lit != nil; ok {
			fmt.Fprint(&b, *text)
			continue
		}
		number := len(inner.inserts)
		if strings.HasSuffix(b.String(), "[") {
			fmt.Fprint(&b, insertedFirst+number)
		} else {
			v = s.inserting(v, s.AsText)
			if strings.HasSuffix(b.String(), ".") { // for other names, such as a-b, Kyverno fails
				guard = allOrNil(guard, expr.Method(v.plain, "matches", expr.String("^[A-Za-z_][A-Za-z0-9_]*$")))
			}
			fmt.Fprintf(&b, "%s%dq", insertedName, number)
		}
		guard = allOrNil(guard, v.strict)
		inner.inserts = append(inner.inserts, v)
	}
	v := inner.Query(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(b.String()), "-")))
	v.strict, v.lenient = allOrNil(guard, v.strict), allOrNil(guard, v.lenient)
	return v.settled()
}

// inserted is a name or a constant that contains other variables.
func (s *Scope) inserted(text string) (e expr.Expr, dynamic bool) {
	if len(s.inserts) == 0 {
		return nil, false
	}
	parts := strings.Split(text, insertedName)
	e = expr.String(parts[0])
	for _, part := range parts[1:] {
		number, rest, found := strings.Cut(part, "q")
		i, err := strconv.Atoi(number)
		if err != nil || !found || i >= len(s.inserts) {
			panic(unsupported("the text "+text, reasonDynamic, ""))
		}
		inserted := s.inserts[i].plain
		if first, ok := expr.StringOf(e); ok && first == "" {
			e = inserted
		} else {
			e = expr.Binary("+", e, inserted)
		}
		if rest != "" {
			e = expr.Binary("+", e, expr.String(rest))
		}
	}
	return e, len(parts) > 1
}

func (s *Scope) insertedIndex(i int) (expr.Expr, bool) {
	if i -= insertedFirst; i < 0 || i >= len(s.inserts) {
		return nil, false
	}
	return s.inserts[i].plain, true
}

// here is the live object's value at the path of the string.
func (s *Scope) here() Value {
	v, ok := s.names["target"]
	if !ok {
		v, _ = s.ofRequest("object")
	}
	if s.place == nil {
		panic(unsupported("{{@}}", "the place of the text is not that of a field", "name the field"))
	}
	for _, name := range s.place {
		if name == "[]" {
			panic(unsupported("{{@}} in a list", "it is the element of the object that stands where this one stands in the patch, whichever is patched", "write a foreach, and element"))
		}
		if i, err := strconv.Atoi(name); err == nil {
			v = v.index(expr.Int(int64(i)))
			continue
		}
		_, plain := pattern.ParseKey(name)
		v = v.field(plain)
	}
	return v
}
