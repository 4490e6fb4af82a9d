package translate

import (
	"encoding/json"
	"fmt"
	"slices"

	gojmespath "github.com/kyverno/go-jmespath"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
)

// Query translates a JMESPath expression.
func (s *Scope) Query(text string) Value { return s.eval(must(jmespath.Parse(text)), nil) }

// eval translates a node in the context of a value; nil is the whole context.
func (s *Scope) eval(ast gojmespath.ASTNode, on *Value) Value {
	s.depth++
	defer func() { s.depth-- }()
	v := s.node(ast, on).settled()
	s.spend(v)
	return v
}

// spend limits the size of all values: a value that is used twice is printed twice, so that a short
// expression can grow exponentially.
func (s *Scope) spend(v Value) {
	for _, e := range []expr.Expr{v.plain, v.has, v.opt, v.strict, v.lenient} {
		*s.size += expr.Size(e, maxSize)
	}
	if *s.size > maxSize {
		panic(unsupported("the rule", "its expressions are too long when all of their parts are written out", "divide it, or simplify its context"))
	}
}

func (s *Scope) node(ast gojmespath.ASTNode, on *Value) Value {
	switch ast.NodeType {
	case gojmespath.ASTField:
		return s.field(ast, on)
	case gojmespath.ASTLiteral:
		return s.literal(ast.Value)
	case gojmespath.ASTCurrentNode, gojmespath.ASTIdentity:
		if on == nil {
			panic(unsupported("@", "CEL has no object of all that a rule knows", "name what is wanted of it"))
		}
		return *on
	case gojmespath.ASTIndex:
		return s.index(ast, on)
	case gojmespath.ASTSubexpression, gojmespath.ASTIndexExpression:
		return s.sub(ast, on)
	case gojmespath.ASTPipe:
		left := s.argument(ast.Children[0], on, isLength(ast.Children[1]))
		left = left.forgiving()
		return s.sure(ast.Children[1], &left).forgiving()
	case gojmespath.ASTOrExpression:
		return s.or(ast, on)
	case gojmespath.ASTAndExpression:
		return s.and(ast, on)
	case gojmespath.ASTNotExpression:
		holds, ok := s.holds(ast.Children[0], on)
		v := boolean(expr.Not(holds))
		v.strict, v.lenient = ok, ok
		return v
	case gojmespath.ASTComparator:
		return s.comparison(ast, on)
	case gojmespath.ASTFunctionExpression:
		return s.call(ast, on)
	case gojmespath.ASTMultiSelectList, gojmespath.ASTMultiSelectHash:
		return s.multiSelect(ast, on)
	}
	return s.project(ast, on)
}

// argument translates an argument. If only its length matters, a default of an empty string, which people
// also use for lists, equals an empty list.
func (s *Scope) argument(ast gojmespath.ASTNode, on *Value, ofLength bool) Value {
	if !ofLength || ast.NodeType != gojmespath.ASTOrExpression || ast.Children[1].Value != "" {
		return s.eval(ast, on)
	}
	list := ast
	list.Children = []gojmespath.ASTNode{ast.Children[0], {NodeType: gojmespath.ASTLiteral, Value: []any{}}}
	var v Value
	if err := Try(func() { v = s.eval(ast, on) }); err != nil && Try(func() { v = s.eval(list, on) }) != nil {
		check(err)
	}
	return v
}

// isLength reports whether a node is the length of its context.
func isLength(ast gojmespath.ASTNode) bool {
	return ast.NodeType == gojmespath.ASTFunctionExpression && ast.Value == "length" && len(ast.Children) == 1 &&
		ast.Children[0].NodeType == gojmespath.ASTCurrentNode
}

func (s *Scope) child(ast gojmespath.ASTNode, i int, on *Value) Value {
	return s.eval(ast.Children[i], on)
}

// lenient translates a child that treats a missing key as null.
func (s *Scope) lenient(ast gojmespath.ASTNode, i int, on *Value) Value {
	return s.child(ast, i, on).forgiving()
}

// sure translates a node that is evaluated only if the value exists.
func (s *Scope) sure(ast gojmespath.ASTNode, on *Value) Value {
	switch ast.NodeType {
	case gojmespath.ASTField, gojmespath.ASTIndex, gojmespath.ASTCurrentNode, gojmespath.ASTIdentity,
		gojmespath.ASTSubexpression,
		gojmespath.ASTIndexExpression:
		return s.eval(ast, on) // it handles absence itself
	}
	switch ast.NodeType {
	case gojmespath.ASTProjection, gojmespath.ASTValueProjection, gojmespath.ASTFilterProjection,
		gojmespath.ASTFlatten:
		v := s.eval(ast, on)
		v.strict, v.lenient = allOrNil(on.strict, v.strict), allOrNil(on.lenient, implied(on.strict, v.lenient))
		return v
	}
	there := *on
	if always := expr.Same(on.strict, on.has); always {
		there.has, there.opt = nil, nil
	}
	there.strict, there.lenient = nil, nil
	v := s.eval(ast, &there)
	if on.strict == nil {
		return v
	}
	if has := allOrNil(on.strict, v.has); !expr.Same(has, v.has) {
		v.has, v.opt = has, nil
	}
	v.strict = allOrNil(on.strict, v.strict)
	v.lenient = allOrNil(on.lenient, implied(on.strict, v.lenient))
	return v
}

func (s *Scope) sub(ast gojmespath.ASTNode, on *Value) Value {
	left := ast.Children[0]
	if left.NodeType == gojmespath.ASTField && left.Value == "request" && on == nil &&
		ast.Children[1].NodeType == gojmespath.ASTField {
		if v, ok := s.ofRequest(ast.Children[1].Value.(string)); ok {
			return v
		}
	}
	l := s.eval(left, on)
	return s.sure(ast.Children[1], &l)
}

func (s *Scope) field(ast gojmespath.ASTNode, on *Value) Value {
	name, _ := ast.Value.(string)
	if name == "null" || name == "" && on == nil { // no object has such a field
		return missing()
	}
	if on != nil {
		if key, dynamic := s.inserted(name); dynamic {
			return on.key(key)
		}
		return on.field(name)
	}
	v, ok := s.names[name]
	if !ok && name == "target" {
		panic(unsupported("the variable target", "it is known in the conditions of targets and in the patch only", ""))
	}
	if !ok {
		check(s.refused[name])
	}
	if !ok {
		panic(unsupported("the variable "+name, "none of this name is known here", ""))
	}
	return v
}

func (s *Scope) literal(value any) Value {
	if text, ok := value.(string); ok {
		if e, dynamic := s.inserted(text); dynamic {
			typ := Type{kinds: isString, form: formOf(text)}
			for _, v := range s.inserts {
				typ.form = min(typ.form, v.typ.Form())
			}
			return Expression(e, typ)
		}
	}
	return Constant(canonical(value))
}

// canonical converts the whole numbers of a JSON value to integers.
func canonical(value any) (out any) {
	check(utiljson.Unmarshal(must(json.Marshal(value)), &out))
	return out
}

func (s *Scope) index(ast gojmespath.ASTNode, on *Value) Value {
	if on == nil {
		panic(unsupported("an index of the whole context", reasonFails, ""))
	}
	i, _ := ast.Value.(int)
	if on.isNever() {
		return on.nothing()
	}
	if e, dynamic := s.insertedIndex(i); dynamic {
		return on.index(e)
	}
	switch {
	case i >= 0:
		return on.index(expr.Int(int64(i)))
	case i == -1 && on.typ.can(isList):
		list := asList(*on)
		on = &list
		last := expr.Method(on.Or(expr.List()), "last")
		v := Optional(last, expr.Method(expr.Method(on.plain, "last"), "value"), on.Elements(), false)
		v.strict, v.lenient = on.strict, on.lenient
		return v
	}
	v := on.index(expr.Binary("-", expr.Method(on.plain, "size"), expr.Int(int64(-i))))
	if on.has != nil {
		panic(unsupported(fmt.Sprintf("the index %d", i), "the list may be absent", "count from the front"))
	}
	return v
}

func (s *Scope) or(ast gojmespath.ASTNode, on *Value) Value {
	if and := ast.Children[0]; and.NodeType == gojmespath.ASTAndExpression {
		return s.ternary(ast, on)
	}
	left := s.lenient(ast, 0, on)
	if name, ok := s.misquoted(ast.Children[1], on); ok {
		if left.strict != nil || left.has != nil || !left.typ.filled {
			s.Note(fmt.Sprintf("%q behind || is no default: double quotes make it the name of a field, which nothing has", name))
		}
		return s.withDefault(left, missing())
	}
	return s.withDefault(left, s.lenient(ast, 1, on))
}

// misquoted returns an undefined variable, which probably is a string with the wrong quotes.
func (s *Scope) misquoted(ast gojmespath.ASTNode, on *Value) (string, bool) {
	name, _ := ast.Value.(string)
	if ast.NodeType != gojmespath.ASTField || on != nil || name == "" || name == "null" {
		return "", false
	}
	_, known := s.names[name]
	return name, !known && s.refused[name] == nil
}

func (s *Scope) ternary(ast gojmespath.ASTNode, on *Value) Value {
	test, ok := s.holds(ast.Children[0].Children[0], on)
	then := s.lenient(ast.Children[0], 1, on)
	otherwise := s.lenient(ast, 1, on)
	also := s.truthy(then)
	both := expr.And(test, also)
	v := s.oneOf(both, then.certain(), otherwise)
	v.strict = allOrNil(ok, implied(test, then.lenient), implied(expr.Not(both), otherwise.lenient))
	v.lenient = v.strict
	return v
}

// oneOf is a choice between two values of the same CEL type.
func (s *Scope) oneOf(test expr.Expr, then, otherwise Value) Value {
	if !then.isNever() && !otherwise.isNever() && !then.typ.can(otherwise.typ.all()) {
		panic(unsupported("a choice of "+then.plain.String()+" and "+otherwise.plain.String(),
			"their types differ", "choose among values of one type"))
	}
	return choice(test, then, otherwise)
}

// holds is the condition that a node is true in JMESPath, with missing keys as false, and the condition
// without which it fails; nil if it never does.
func (s *Scope) holds(ast gojmespath.ASTNode, on *Value) (holds, ok expr.Expr) {
	switch ast.NodeType {
	case gojmespath.ASTNotExpression:
		holds, ok = s.holds(ast.Children[0], on)
		return expr.Not(holds), ok
	case gojmespath.ASTOrExpression, gojmespath.ASTAndExpression:
		left, leftOK := s.holds(ast.Children[0], on)
		right, rightOK := s.holds(ast.Children[1], on)
		if ast.NodeType == gojmespath.ASTAndExpression {
			return expr.And(left, right), allOrNil(leftOK, implied(left, rightOK))
		}
		return expr.Or(left, right), allOrNil(leftOK, implied(expr.Not(left), rightOK))
	}
	v := s.eval(ast, on)
	v = v.forgiving()
	return s.truthy(v), v.lenient
}

// withDefault is left if that is true in JMESPath, else right.
func (s *Scope) withDefault(left, right Value) Value {
	if value, ok := left.Literal(); ok {
		if jmespath.Truthy(value) {
			return left
		}
		return right
	}
	if left.typ.all() == isAny && right.typ.all() != isAny {
		if text, ok := expr.StringOf(right.plain); ok && s.tests && s.depth == 1 { // conditions check the type
			none := expr.Binary("in", left.Or(expr.String("")),
				expr.List(expr.Call("dyn", expr.String("")), expr.Bool(false), expr.List(), expr.Map()))
			v := Expression(choose(none, expr.Call("dyn", expr.String(text)), left.Or(expr.String(""))), Any)
			v.missing = &fallback{value: text, also: []any{false, []any{}, map[string]any{}}, of: &left}
			v.strict, v.lenient = left.lenient, left.lenient
			return v
		}
		// It is assumed to have the type of its default; with another type, the rule changes nothing.
		left.lenient = allOrNil(left.lenient, some(expr.Not(expr.And(left.has)), isOf(left.plain, right.typ.kinds)))
		left.typ.kinds = right.typ.kinds
	}
	if literal, ok := right.Literal(); ok {
		mixed := literal != nil && !left.typ.can(right.typ.all()) && !left.isNever()
		if mixed && s.depth == 1 && (s.tests || !jmespath.Truthy(literal)) { // a condition can compare it
			holds := s.truthy(left)
			v := choice(holds, left.certain(), right)
			v.strict, v.lenient = left.lenient, left.lenient
			if _, isText := literal.(string); isText {
				v.missing = &fallback{value: literal, unless: holds}
			}
			return v
		}
		if left.typ.quantity && left.has != nil && s.depth == 1 && literal != nil {
			v := choice(left.has, left.certain(), right)
			v.missing = &fallback{value: literal, unless: left.has, of: &left}
			v.strict, v.lenient = left.lenient, left.lenient
			return v
		}
		if mixed {
			panic(unsupported("a default of another type than "+left.plain.String(), "their types differ",
				"give it a default of the same type"))
		}
		if isZero(left.typ, literal) || left.typ.is(isNumber) && literal != nil {
			v := left
			def := right.plain
			if left.typ.all() != right.typ.all() {
				def = expr.Call("dyn", def)
			}
			v.plain, v.has, v.opt, v.each = left.Or(def), nil, nil, nil
			if left.has == nil {
				v.each = left.each
			} else {
				v.keysOf = nil
			}
			v.typ = either(left.typ, right.typ)
			v.strict = left.lenient
			return v
		}
	}
	holds := s.truthy(left)
	v := s.oneOf(holds, left.certain(), right)
	v.strict = allOrNil(left.lenient, implied(expr.Not(holds), right.lenient))
	v.lenient = v.strict
	return v
}

// isZero reports whether a constant is the only falsy JMESPath value of a type.
func isZero(t Type, literal any) bool {
	switch v := literal.(type) {
	case string:
		return v == "" && t.is(isString)
	case bool:
		return !v && t.is(isBool)
	case []any:
		return len(v) == 0 && t.is(isList)
	case map[string]any:
		return len(v) == 0 && t.is(isMap)
	}
	return false
}

// and translates a && b: a if falsy, else b.
func (s *Scope) and(ast gojmespath.ASTNode, on *Value) Value {
	left := s.lenient(ast, 0, on)
	right := s.child(ast, 1, on)
	holds := s.truthy(left)
	v := s.oneOf(holds, right, left)
	if left.typ.is(isBool) && right.typ.is(isBool) && left.has == nil && right.has == nil {
		v = boolean(expr.And(asCondition(left.plain), asCondition(right.plain)))
	}
	v.strict = allOrNil(left.lenient, implied(holds, right.strict))
	v.lenient = allOrNil(left.lenient, implied(holds, right.lenient))
	return v
}

// boolean is a condition as a value, which fails if one of the operands fails.
func boolean(e expr.Expr, operands ...Value) Value {
	v := Expression(e, Boolean)
	if value, ok := expr.BoolOf(e); ok {
		v = Constant(value)
	}
	for _, o := range operands {
		v.lenient = allOrNil(v.lenient, o.lenient)
	}
	v.strict = v.lenient
	return v
}

// truthy is the condition that a value is true in JMESPath.
func (s *Scope) truthy(v Value) expr.Expr {
	if value, ok := v.Literal(); ok {
		return expr.Bool(jmespath.Truthy(value))
	}
	empty := expr.String("")
	t := v.typ
	switch {
	case t.filled && v.has == nil:
		return expr.Bool(true)
	case t.is(isBool):
		return asCondition(v.Or(expr.Bool(false)))
	case t.is(isNumber), t.quantity: // a server rejects empty ones
		return expr.And(v.has)
	case t.is(isString | isNumber):
		return expr.NotEqual(v.Or(empty), empty)
	case t.is(isScalar):
		return expr.Not(expr.Binary("in", v.Or(empty), expr.List(expr.Call("dyn", empty), expr.Bool(false))))
	case t.is(isList):
		return s.exists(v, func(Value) expr.Expr { return expr.Bool(true) })
	case t.is(isMap):
		return expr.Binary(">", expr.Method(v.Or(expr.Map()), "size"), expr.Int(0))
	}
	panic(unsupported("whether "+v.plain.String()+" is empty", reasonUnknownType, ""))
}

func (s *Scope) comparison(ast gojmespath.ASTNode, on *Value) Value {
	left := s.lenient(ast, 0, on)
	right := s.lenient(ast, 1, on)
	switch fmt.Sprint(ast.Value) {
	case "tEQ":
		return boolean(equal(left, right), left, right)
	case "tNE":
		return boolean(expr.Not(equal(left, right)), left, right)
	}
	op := map[string]string{"tLT": "<", "tLTE": "<=", "tGT": ">", "tGTE": ">="}[fmt.Sprint(ast.Value)]
	if !left.typ.can(isNumber) || !right.typ.can(isNumber) { // only numbers are ordered
		v := null()
		v.lenient = allOrNil(left.lenient, right.lenient)
		v.strict = v.lenient
		return v
	}
	left, right = left.needs(isNumber), right.needs(isNumber)
	v := boolean(expr.Binary(op, left.plain, right.plain), left, right)
	v.has = allOrNil(left.has, right.has)
	return v
}

// equal compares two values; null equals only null.
func equal(a, b Value) expr.Expr {
	if _, ok := a.Literal(); ok {
		a, b = b, a
	}
	if value, ok := b.Literal(); ok {
		if value == nil {
			return expr.Not(a.has)
		}
		if a.lit == nil && !a.typ.can(b.typ.all()) {
			return expr.Bool(false)
		}
		return a.test(kindsOf(b.plain), func(e expr.Expr) expr.Expr { return expr.Equal(e, b.plain) })
	}
	switch {
	case !a.typ.can(b.typ.all()):
		return expr.And(expr.Not(a.has), expr.Not(b.has))
	case a.has == nil && b.has == nil:
		return expr.Equal(a.plain, b.plain)
	}
	return expr.Equal(a.Optional(), b.Optional())
}

func (s *Scope) multiSelect(ast gojmespath.ASTNode, on *Value) Value {
	v := Value{}
	fields := StructOf(nil)
	var items []expr.Expr
	var entries []expr.Entry
	for _, child := range ast.Children {
		name, _ := child.Value.(string)
		if ast.NodeType == gojmespath.ASTMultiSelectHash {
			child = child.Children[0]
		}
		member := s.eval(child, on).forgiving()
		if fields.known[name] = &member.typ; member.has == nil {
			fields.required = append(fields.required, name)
		}
		v.lenient = allOrNil(v.lenient, member.lenient)
		entries = append(entries, expr.Entry{Key: expr.String(name), Value: member.Or(expr.Null())})
		items = append(items, member.Or(expr.Null()))
		v.members = append(v.members, member)
	}
	switch {
	case ast.NodeType == gojmespath.ASTMultiSelectHash:
		v.plain, v.typ, v.members = expr.Map(entries...), fields, nil
	case slices.ContainsFunc(v.members, mayBeNull):
		v.plain, v.typ = expr.List(items...), ListOf(Any)
	default:
		v.plain, v.typ = expr.List(items...), ListOf(typeOfAll(v.members))
	}
	v.strict = v.lenient
	if on != nil && on.has != nil {
		v.has = on.has
	}
	return v
}

func mayBeNull(v Value) bool { return v.has != nil }

func typeOfAll(members []Value) Type {
	elem := Any
	for i, member := range members {
		if elem = either(elem, member.typ); i == 0 {
			elem = member.typ
		}
	}
	return elem
}
