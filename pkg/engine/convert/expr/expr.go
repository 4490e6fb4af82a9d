package expr

import (
	"slices"
	"strings"
)

// Expr is a CEL expression. It is immutable; nil stands for true where a condition is meant.
type Expr interface {
	// precedence says when the expression needs parentheses: see the constants.
	precedence() int
}

// How strongly the operators bind.
const (
	bindsCond = iota + 1
	bindsOr
	bindsAnd
	bindsRelation
	bindsAdd
	bindsMultiply
	bindsUnary
	bindsMember
)

type (
	// literal is the text of a constant, or a name.
	literal struct {
		text string
		kind Kind
	}
	sel struct {
		of       Expr
		name     string
		optional bool
	}
	index struct {
		of, key  Expr
		optional bool
	}
	call struct {
		of   Expr // nil for a function that is no method
		name string
		args []Expr
	}
	binary struct {
		op          string
		left, right Expr
	}
	chain struct { // && and ||
		op       string
		operands []Expr
	}
	not   struct{ of Expr }
	minus struct{ of Expr }
	typed struct { // whose kind is known although it does not show
		Expr
		kind Kind
	}
	cond   struct{ test, then, otherwise Expr }
	list   struct{ items []Expr }
	object struct{ entries []Entry }
)

// Entry is a field of an object, or an entry of a map.
type Entry struct {
	Name  string // of a field
	Key   Expr   // of a map
	Value Expr
	// Optional is set where Value is an optional, so that the entry may be left out.
	Optional bool
}

func (literal) precedence() int { return bindsMember }
func (sel) precedence() int     { return bindsMember }
func (index) precedence() int   { return bindsMember }
func (call) precedence() int    { return bindsMember }
func (not) precedence() int     { return bindsUnary }
func (minus) precedence() int   { return bindsUnary }
func (cond) precedence() int    { return bindsCond }
func (list) precedence() int    { return bindsMember }
func (object) precedence() int  { return bindsMember }

func (b binary) precedence() int {
	switch b.op {
	case "+", "-":
		return bindsAdd
	case "*", "/", "%":
		return bindsMultiply
	}
	return bindsRelation
}

func (c chain) precedence() int {
	if c.op == "||" {
		return bindsOr
	}
	return bindsAnd
}

// Name is a variable, such as object, or what a macro binds.
func Name(name string) Expr { return literal{text: name} }

// Variable is an entry of a policy's variables.
func Variable(name string) Expr { return Field(Name("variables"), name) }

// Field selects a field, whose name may be any text: a.b, or a["b/c"].
func Field(of Expr, name string) Expr {
	if !IsIdentifier(name) {
		return index{of: of, key: String(name)}
	}
	return sel{of: of, name: name}
}

// OptionalField is a field, as an optional: a.?b. Behind another one it is plain, since what follows an
// optional is one as well.
func OptionalField(of Expr, name string) Expr {
	if !IsIdentifier(name) {
		return OptionalIndex(of, String(name))
	}
	return sel{of: of, name: name, optional: !IsOptional(of)}
}

// Index is an element of a list, or an entry of a map: a[b].
func Index(of, key Expr) Expr { return index{of: of, key: key} }

// OptionalIndex is an element or an entry, as an optional: a[?b], or a[b] of an optional.
func OptionalIndex(of, key Expr) Expr { return index{of: of, key: key, optional: !IsOptional(of)} }

// Call calls a function.
func Call(name string, args ...Expr) Expr {
	switch name {
	case "string", "int", "double", "duration", "timestamp", "bytes":
		if isOpen(args[0]) {
			args = []Expr{call{name: "dyn", args: args}}
		}
	}
	return call{name: name, args: args}
}

// Method calls a method or a macro: of.name(args).
func Method(of Expr, name string, args ...Expr) Expr { return call{of: of, name: name, args: args} }

// Macro is of.name(variable, body), such as exists or map.
func Macro(of Expr, name, variable string, body Expr) Expr {
	return Method(of, name, Name(variable), body)
}

// OrValue is the value of an optional, or a default.
func OrValue(optional, or Expr) Expr { return Method(optional, "orValue", or) }

// HasValue reports whether an optional has a value.
func HasValue(optional Expr) Expr { return Method(optional, "hasValue") }

// Binary is an arithmetic operator or a relation: + - * / % == != < <= > >= in. Constants are compared at
// once.
func Binary(op string, left, right Expr) Expr {
	l, lok := left.(literal)
	r, rok := right.(literal)
	if lok && rok && l.kind != Dyn && r.kind != Dyn {
		switch op {
		case "==":
			return Bool(l == r)
		case "!=":
			return Bool(l != r)
		}
	}
	if whole, ok := strings.CutSuffix(r.text, ".0"); ok && r.kind == Double && KindOf(left) == Integer {
		right = literal{text: whole, kind: Integer}
	}
	if a, b := KindOf(left), KindOf(right); (op == "==" || op == "!=") && a != b && a != Dyn && b != Dyn {
		left = Call("dyn", left) // for which the type checker lets them be compared
	}
	if _, isCall := left.(call); isCall && (op == "==" || op == "!=") && isAggregate(right) && !IsOptional(left) && left.(call).name != "orValue" {
		left = Call("dyn", left) // for a list of another type than that of the constant
	}
	if op == "+" {
		if l, lok := StringOf(left); lok {
			if r, rok := StringOf(right); rok {
				return String(l + r)
			}
		}
	}
	return binary{op: op, left: left, right: right}
}

func isAggregate(e Expr) bool {
	switch e.(type) {
	case list, object:
		return true
	}
	return false
}

// Equal is left == right.
func Equal(left, right Expr) Expr { return Binary("==", left, right) }

// NotEqual is left != right.
func NotEqual(left, right Expr) Expr { return Binary("!=", left, right) }

// And holds where all conditions hold; nil and true are left out, and so are those that are there
// already.
func And(conditions ...Expr) Expr { return joined("&&", conditions) }

// Or holds where one of the conditions holds.
func Or(conditions ...Expr) Expr { return joined("||", conditions) }

// joined returns true where nothing is left of &&, and false where nothing is left of ||.
func joined(op string, conditions []Expr) Expr {
	neutral := op == "&&"
	var operands []Expr
	seen := map[string]bool{}
	for _, c := range conditions {
		if c == nil {
			c = Bool(true)
		}
		parts := []Expr{c}
		if same, ok := c.(chain); ok && same.op == op {
			parts = same.operands
		}
		for _, part := range parts {
			if value, constant := BoolOf(part); constant {
				if value != neutral {
					return Bool(!neutral)
				}
				continue
			}
			if text := flat(part); !seen[text] {
				seen[text] = true
				operands = append(operands, part)
			}
		}
	}
	if op == "&&" {
		operands = slices.DeleteFunc(slices.Clone(operands), func(c Expr) bool {
			return slices.ContainsFunc(operands, func(by Expr) bool { return givenBy(c, by) })
		})
	}
	switch len(operands) {
	case 0:
		return Bool(neutral)
	case 1:
		return operands[0]
	}
	return chain{op: op, operands: operands}
}

// Range is what a macro over a list may go over as well: the map whose keys it has, whatever their order.
func Range(list Expr) Expr {
	switch e := list.(type) {
	case cond:
		if then := Range(e.then); flat(e.otherwise) == "[]" && !Same(then, e.then) {
			return Cond(e.test, then, Map())
		}
	case call:
		keys, ok := e.of.(call)
		if ok && e.name == "sort" && keys.name == "map" && Same(keys.args[0], keys.args[1]) {
			return keys.of
		}
	}
	return list
}

// givenBy reports whether a.hasValue() is asked by a.b.hasValue() already.
func givenBy(condition, by Expr) bool {
	outer, ok := condition.(call)
	inner, isCall := by.(call)
	if !ok || !isCall || outer.name != "hasValue" || inner.name != "hasValue" {
		return false
	}
	for of := inner.of; ; {
		switch below := of.(type) {
		case sel:
			of = below.of
		case index:
			of = below.of
		default:
			return false
		}
		if Same(of, outer.of) {
			return true
		}
	}
}

// Not negates a condition.
func Not(condition Expr) Expr {
	if condition == nil {
		return Bool(false)
	}
	opposites := map[string]string{"==": "!=", "!=": "=="}
	switch c := condition.(type) {
	case not:
		return c.of
	case binary:
		if opposite, ok := opposites[c.op]; ok {
			return binary{op: opposite, left: c.left, right: c.right}
		}
		if size, ok := c.left.(call); ok && size.name == "size" && c.op == ">" && Same(c.right, Int(0)) {
			return binary{op: "==", left: c.left, right: c.right}
		}
	case literal:
		if value, ok := BoolOf(c); ok {
			return Bool(!value)
		}
	}
	return not{condition}
}

// Minus is -number.
func Minus(number Expr) Expr { return minus{number} }

// Cond is test ? then : otherwise.
func Cond(test, then, otherwise Expr) Expr {
	if test == nil {
		return then
	}
	if value, ok := BoolOf(test); ok {
		if value {
			return then
		}
		return otherwise
	}
	a, isA := BoolOf(then)
	b, isB := BoolOf(otherwise)
	switch {
	case isA && isB && a && !b:
		return test
	case isA && isB && !a && b:
		return Not(test)
	case isB && !b && KindOf(then) == Boolean:
		return And(test, then)
	case flat(then) == flat(otherwise):
		return then
	}
	if has, isCall := test.(call); isCall && has.name == "has" && len(has.args) == 1 && Same(has.args[0], then) {
		if field, ok := then.(sel); ok && !field.optional {
			field.optional = true
			return OrValue(field, otherwise)
		}
	}
	return cond{test, then, otherwise}
}

// List is a list. Where its items are not of one type they are written as dyn(item), since CEL's lists
// are of one type.
func List(items ...Expr) Expr { return list{homogeneous(items)} }

// Map is a map, whose values are written as those of a List.
func Map(entries ...Entry) Expr {
	entries = slices.Clone(entries)
	keys, values := make([]Expr, len(entries)), make([]Expr, len(entries))
	for i, e := range entries {
		keys[i], values[i] = e.Key, e.Value
		if e.Optional {
			values[i] = Name("")
		}
	}
	keys, values = homogeneous(keys), homogeneous(values)
	for i := range entries {
		entries[i].Key = keys[i]
		if !entries[i].Optional {
			entries[i].Value = values[i]
		}
	}
	return object{entries: entries}
}

func homogeneous(items []Expr) []Expr {
	first := Dyn
	mixed := false
	for i, item := range items {
		kind := kindInList(item)
		if i == 0 {
			first = kind
		}
		mixed = mixed || kind != first
		mixed = mixed || (kind == ListKind || kind == MapKind) && len(items) > 1
	}
	if !mixed {
		return items
	}
	out := make([]Expr, len(items))
	for i, item := range items {
		out[i] = item
		if kindInList(item) != Dyn {
			out[i] = Call("dyn", item)
		}
	}
	return out
}

// kindInList is what CEL's type checker takes an element of a list for. A part of the object with a default may
// be anything, whatever the default is.
func kindInList(item Expr) Kind {
	if c, ok := item.(call); ok && c.name == "orValue" {
		if _, chosen := c.of.(cond); chosen || KindOf(c.args[0]) == NullKind {
			return OpenKind // the checker may take it for the default's type or for anything
		}
		return Dyn
	}
	return KindOf(item)
}

// Typed is an expression whose kind is known, such as that of a field that CEL declares.
func Typed(e Expr, kind Kind) Expr { return typed{e, kind} }

// IsPath reports whether an expression is a part of the object, so that its type is not known before it is
// evaluated.
func IsPath(e Expr) bool {
	switch e := e.(type) {
	case sel:
		return IsPath(e.of)
	case index:
		return IsPath(e.of)
	case literal:
		return e.text == "object" || e.text == "oldObject"
	}
	return false
}

// Same reports whether two expressions have one text; nil is not the same as true.
func Same(a, b Expr) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return flat(a) == flat(b)
}

// EqualTo returns what a condition compares an expression of a text with: b of a == b.
func EqualTo(condition Expr, text string) (Expr, bool) {
	b, ok := condition.(binary)
	if !ok || b.op != "==" || flat(b.left) != text {
		return nil, false
	}
	return b.right, true
}

// EqualToAny returns what conditions compare one expression with, where each is a comparison of it with a
// constant: b and c of a == b, a == c.
func EqualToAny(conditions []Expr) (of Expr, values []Expr, ok bool) {
	for _, c := range conditions {
		b, isBinary := c.(binary)
		if !isBinary || b.op != "==" || of != nil && flat(of) != flat(b.left) {
			return nil, nil, false
		}
		if _, isLiteral := b.right.(literal); !isLiteral {
			return nil, nil, false
		}
		of, values = b.left, append(values, b.right)
	}
	return of, values, of != nil
}

// IsIdentifier reports whether a name can follow a dot.
func IsIdentifier(name string) bool {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || name[0] <= '9' {
		return false
	}
	return !slices.Contains([]string{"in", "true", "false", "null"}, name)
}
