package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Expr is a CEL expression. It is immutable; nil stands for true where a condition is meant.
type Expr = *Node

// Node is an expression, or a part of one.
type Node struct {
	op   operation
	name string // of a constant, a variable, a field, a function, an operator, the type of an object
	// args are the operands. What a field, an element or a method is of is the first one.
	args     []Expr
	entries  []Entry // of an object or a map
	kind     Kind    // of a constant, and where it is known although it does not show
	optional bool    // of a field or an element: a.?b
}

// operation is what a Node does with its operands.
type operation int

const (
	constant    operation = iota
	variable              // object, or what a macro binds
	selection             // a.b
	indexing              // a[b]
	calling               // f(a)
	method                // a.f(b)
	prefix                // !a, -a
	relation              // a == b, a + b
	chain                 // of && or ||
	choice                // a ? b : c
	listing               // [a, b]
	object                // {a: b}, or T{a: b}
	parentheses           // (a)
)

// Entry is a field of an object, or an entry of a map.
type Entry struct {
	Name  string // of a field
	Key   Expr   // of a map
	Value Expr
	// Optional is set where Value is an optional, so that the entry may be left out.
	Optional bool
}

// How strongly the operators bind.
const (
	bindsChoice = iota + 1
	bindsOr
	bindsAnd
	bindsRelation
	bindsAdd
	bindsMultiply
	bindsPrefix
	bindsMember
)

// precedence says when the expression needs parentheses.
func (e *Node) precedence() int {
	switch e.op {
	case choice:
		return bindsChoice
	case prefix:
		return bindsPrefix
	case chain, relation:
		switch e.name {
		case "||":
			return bindsOr
		case "&&":
			return bindsAnd
		case "+", "-":
			return bindsAdd
		case "*", "/", "%":
			return bindsMultiply
		}
		return bindsRelation
	}
	return bindsMember
}

// is reports whether an expression is a function or a method of a name, or one with an operator.
func (e *Node) is(op operation, name string) bool {
	return e != nil && e.op == op && e.name == name && e.kind == Dyn
}

// Map is the expression with each of its operands replaced.
func (e *Node) Map(f func(Expr) Expr) Expr {
	out := *e
	out.args, out.entries = slices.Clone(e.args), slices.Clone(e.entries)
	for i := range out.args {
		out.args[i] = f(out.args[i])
	}
	for i := range out.entries {
		if out.entries[i].Key != nil {
			out.entries[i].Key = f(out.entries[i].Key)
		}
		out.entries[i].Value = f(out.entries[i].Value)
	}
	return &out
}

// Rewrite replaces the parts of an expression, the innermost first.
func Rewrite(e Expr, f func(part Expr) Expr) Expr {
	return f(e.Map(func(part Expr) Expr { return Rewrite(part, f) }))
}

// Replace is an expression in which each part that is the same as another one is replaced.
func Replace(e, part, by Expr) Expr {
	return Rewrite(e, func(e Expr) Expr {
		if Same(e, part) {
			return by
		}
		return e
	})
}

// Given is an expression where some conditions hold, which it does not ask for again: neither for one of
// them, nor, in a macro over a list, for what holds for all its elements.
func Given(e Expr, known []Expr) Expr {
	known = Operands(And(known...), "&&")
	if e.op != constant &&
		(Contains(known, e) || slices.ContainsFunc(known, func(by Expr) bool { return givenBy(e, by) })) {
		return Bool(true)
	}
	body := slices.DeleteFunc(slices.Clone(known), func(k Expr) bool { // about another variable of the name
		return (e.op == calling || e.op == method) &&
			slices.ContainsFunc(e.args, func(arg Expr) bool { return arg.op == variable && Mentions(k, arg) })
	})
	if of, name := macroParts(e); of != nil {
		for _, k := range known {
			if over, element := macroParts(k); k.is(method, "all") && Same(over, of) && Same(element, name) {
				body = append(body[:len(body):len(body)], k.args[2])
			}
		}
	}
	out := e.Map(func(part Expr) Expr {
		if len(e.args) > 0 && part == e.args[0] {
			return Given(part, known)
		}
		return Given(part, body)
	})
	switch {
	case e.op == chain && e.kind == Dyn:
		return join(e.name, out.args)
	case e.op == choice && e.kind == Dyn:
		return Cond(out.args[0], out.args[1], out.args[2])
	case e.is(prefix, "!"):
		return Not(out.args[0])
	case e.op == parentheses && e.kind == Dyn:
		return Parentheses(out.args[0])
	}
	return out
}

// macroParts are the list of a macro and the variable that stands for its elements; nil for any other
// expression.
func macroParts(e Expr) (list, element Expr) {
	switch {
	case e.is(method, "transformList") && len(e.args) > 3:
		return e.args[0], e.args[2]
	case len(e.args) == 3 && slices.ContainsFunc([]string{"all", "exists", "filter", "map"},
		func(name string) bool { return e.is(method, name) }):
		return e.args[0], e.args[1]
	}
	return nil, nil
}

// Fields are those of an object of a type; none of any other expression.
func Fields(e Expr, typ string) []Entry {
	if e.op != object || e.name != typ {
		return nil
	}
	return slices.Clone(e.entries)
}

// Mentions reports whether an expression has a part that is the same as another one.
func Mentions(e, part Expr) bool {
	found := Same(e, part)
	e.Map(func(e Expr) Expr { found = found || Mentions(e, part); return e })
	return found
}

// Unwrapped is the argument of a function, or the expression itself where it is none of it.
func Unwrapped(e Expr, function string) Expr {
	if e.is(calling, function) && len(e.args) == 1 {
		return e.args[0]
	}
	return e
}

// CutMethod is what a method is called on, if the expression is a call of it with some arguments.
func CutMethod(e Expr, name string, args ...Expr) (of Expr, found bool) {
	if e.is(method, name) && Same(e, Method(e.args[0], name, args...)) {
		return e.args[0], true
	}
	return e, false
}

// Size is how many parts an expression is written with; not more than limit are counted.
func Size(e Expr, limit int) int {
	n := 1
	if e == nil {
		return n
	}
	parts := e.args
	for _, entry := range e.entries {
		parts = append(parts[:len(parts):len(parts)], entry.Value)
	}
	for _, part := range parts {
		if n >= limit {
			return limit
		}
		n += Size(part, limit-n)
	}
	return n
}

// Name is a variable, such as object, or what a macro binds.
func Name(name string) Expr { return &Node{op: variable, name: name} }

// Path is a variable and fields of it, such as request.?namespace.
func Path(path string) Expr {
	name, fields, more := strings.Cut(path, ".")
	out := Name(name)
	for more {
		name, fields, more = strings.Cut(fields, ".")
		if optional, ok := strings.CutPrefix(name, "?"); ok {
			out = OptionalField(out, optional)
		} else {
			out = Field(out, name)
		}
	}
	return out
}

// Variable is an entry of a policy's variables.
func Variable(name string) Expr { return Field(Name("variables"), name) }

// Field selects a field, whose name may be any string: a.b, or a["b/c"].
func Field(of Expr, name string) Expr {
	if !IsIdentifier(name) {
		return Index(of, String(name))
	}
	return &Node{op: selection, name: name, args: []Expr{of}}
}

// OptionalField is a field, as an optional: a.?b. Behind another one it is plain, since what follows an
// optional is one as well.
func OptionalField(of Expr, name string) Expr {
	if !IsIdentifier(name) {
		return OptionalIndex(of, String(name))
	}
	return &Node{op: selection, name: name, args: []Expr{of}, optional: !IsOptional(of)}
}

// Index is an element of a list, or an entry of a map: a[b].
func Index(of, key Expr) Expr { return &Node{op: indexing, args: []Expr{of, key}} }

// OptionalIndex is an element or an entry, as an optional: a[?b], or a[b] of an optional.
func OptionalIndex(of, key Expr) Expr {
	return &Node{op: indexing, args: []Expr{of, key}, optional: !IsOptional(of)}
}

// Marked is a field or an element, as an optional that is written as one even behind another one.
func Marked(e Expr) Expr {
	out := *e
	out.optional = true
	return &out
}

// Call calls a function.
func Call(name string, args ...Expr) Expr { return &Node{op: calling, name: name, args: args} }

// Flattened joins the lists in a list. The type checker leaves the type of its elements open, and would take
// the first form of an overloaded function for them, whatever they are.
func Flattened(list Expr) Expr { return Call("dyn", Method(list, "flatten")) }

// Method calls a method or a macro: of.name(args). Those of constant strings are called at once.
func Method(of Expr, name string, args ...Expr) Expr {
	if text, ok := StringOf(of); ok && len(args) == 1 {
		if arg, ok := StringOf(args[0]); ok && tests[name] != nil {
			return Bool(tests[name](text, arg))
		}
	}
	return &Node{op: method, name: name, args: append([]Expr{of}, args...)}
}

// tests are the methods of strings that are conditions.
var tests = map[string]func(text, arg string) bool{ //nolint:gochecknoglobals // an immutable table
	"startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix, "contains": strings.Contains,
	"matches": func(text, expression string) bool { return regexp.MustCompile(expression).MatchString(text) },
}

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
	if holds, ok := constants(op, left, right); ok {
		return Bool(holds)
	}
	if same, ok := comparedWithBool(op, left, right); ok {
		return same
	}
	if whole, ok := strings.CutSuffix(right.name, ".0"); ok && right.op == constant && right.kind == Double &&
		KindOf(left) == Integer {
		right = &Node{name: whole, kind: Integer}
	}
	// which the type checker does not compare
	if KindOf(left) == Double && right.op == constant && right.kind == Integer {
		right = &Node{name: right.name + ".0", kind: Double}
	}
	equality := op == "==" || op == "!="
	if a, b := KindOf(left), KindOf(right); equality && a != b && a != Dyn && b != Dyn {
		left = Call("dyn", left) // for which the type checker lets them be compared
	}
	isCall := left.kind == Dyn && (left.op == calling || left.op == method)
	if isCall && equality && (right.op == listing || right.op == object) && !IsOptional(left) &&
		left.name != "orValue" {
		left = Call("dyn", left) // for a list of another type than that of the constant
	}
	if op == "+" {
		if l, lok := StringOf(left); lok {
			if r, rok := StringOf(right); rok {
				return String(l + r)
			}
		}
	}
	return &Node{op: relation, name: op, args: []Expr{left, right}}
}

// constants is what a relation of constants comes to.
func constants(op string, left, right Expr) (holds, ok bool) {
	switch {
	case left.op != constant:
		return false, false
	case op == "in" && right.op == listing &&
		!slices.ContainsFunc(right.args, func(e Expr) bool { return e.op != constant }):
		return Contains(right.args, left), true
	case right.op != constant:
		return false, false
	case op == "==" || op == "!=":
		return (left.name == right.name && left.kind == right.kind) == (op == "=="), true
	}
	a, errA := strconv.ParseFloat(left.name, 64)
	b, errB := strconv.ParseFloat(right.name, 64)
	order := map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
	holds, ok = order[op]
	return holds, ok && errA == nil && errB == nil
}

// comparedWithBool is a boolean that is compared with a constant one.
func comparedWithBool(op string, left, right Expr) (same Expr, ok bool) {
	if isBoolean(right) {
		left, right = right, left
	}
	value, constant := BoolOf(right)
	switch {
	case op != "==" && op != "!=" || !constant || !isBoolean(left):
		return nil, false
	case value == (op == "=="):
		return left, true
	}
	return Not(left), true
}

// isBoolean reports whether an expression is never anything but a boolean.
func isBoolean(e Expr) bool {
	switch e.op {
	case chain, prefix, relation:
		return e.kind == Dyn && KindOf(e) == Boolean
	case calling, method:
		return e.kind == Dyn && results[e.name] == Boolean
	}
	return false
}

// Equal is left == right.
func Equal(left, right Expr) Expr { return Binary("==", left, right) }

// NotEqual is left != right.
func NotEqual(left, right Expr) Expr { return Binary("!=", left, right) }

// Sum is the sum of some expressions, of which there is one at least.
func Sum(all ...Expr) Expr {
	out := all[0]
	for _, e := range all[1:] {
		out = Binary("+", out, e)
	}
	return out
}

// Terms are the summands of a sum; any other expression is the only one.
func Terms(sum Expr) []Expr {
	if !sum.is(relation, "+") {
		return []Expr{sum}
	}
	return append(Terms(sum.args[0]), sum.args[1])
}

// And holds where all conditions hold; nil and true are left out, and so are those that are there
// already.
func And(conditions ...Expr) Expr { return join("&&", conditions) }

// Or holds where one of the conditions holds.
func Or(conditions ...Expr) Expr { return join("||", conditions) }

// join returns true where nothing is left of &&, and false where nothing is left of ||.
func join(op string, conditions []Expr) Expr {
	neutral := op == "&&"
	var operands []Expr
	seen := map[string]bool{}
	for _, c := range conditions {
		for _, part := range Operands(c, op) {
			if value, constant := BoolOf(part); constant {
				if value != neutral {
					return Bool(!neutral)
				}
				continue
			}
			if text := part.String(); !seen[text] {
				seen[text] = true
				operands = append(operands, part)
			}
		}
	}
	if neutral {
		for i, c := range operands {
			operands[i] = orNothing(c, operands)
		}
		operands = slices.DeleteFunc(slices.Clone(operands), func(c Expr) bool {
			return slices.ContainsFunc(operands,
				func(by Expr) bool { return givenBy(c, by) || c != by && Contains(Operands(c, "||"), by) })
		})
	}
	switch len(operands) {
	case 0:
		return Bool(neutral)
	case 1:
		return operands[0]
	}
	return &Node{op: chain, name: op, args: operands}
}

// Operands are those of a chain of && or ||; any other condition is the only one.
func Operands(condition Expr, op string) []Expr {
	switch {
	case condition == nil:
		return []Expr{Bool(true)}
	case condition.op == chain && condition.name == op:
		return condition.args
	}
	return []Expr{condition}
}

// Range is what a macro over a list may go over as well: the map whose keys it has, whatever their order.
func Range(list Expr) Expr {
	switch {
	case list.kind != Dyn:
	case list.op == choice:
		if then := Range(list.args[1]); list.args[2].String() == "[]" && !Same(then, list.args[1]) {
			return Cond(list.args[0], then, Map())
		}
	case list.is(method, "sort"):
		if keys := list.args[0]; keys.is(method, "map") && Same(keys.args[1], keys.args[2]) {
			return keys.args[0]
		}
	}
	return list
}

// givenBy reports whether a.hasValue() is asked by a.b.hasValue() already, or a != "" by a == "x".
func givenBy(condition, by Expr) bool {
	if asked := notEmpty(condition); asked != nil {
		value, ok := EqualTo(by, asked)
		return ok && value.op == constant && value.String() != `""`
	}
	if !condition.is(method, "hasValue") || !by.is(method, "hasValue") {
		return false
	}
	for of := by.args[0]; of.kind == Dyn && (of.op == selection || of.op == indexing); {
		if of = of.args[0]; Same(of, condition.args[0]) {
			return true
		}
	}
	return false
}

// orNothing is a.b == "x" as a.?b.orValue("") == "x" where others ask whether that is empty.
func orNothing(condition Expr, others []Expr) Expr {
	for _, c := range others {
		if asked := notEmpty(c); asked != nil {
			if value, ok := EqualTo(condition, withoutOptionals(asked.args[0])); ok && value.op == constant &&
				value.String() != `""` {
				return Equal(asked, value)
			}
		}
	}
	return condition
}

// notEmpty is a.orValue("") of a.orValue("") != "", and nil of another condition.
func notEmpty(condition Expr) (asked Expr) {
	if condition.is(relation, "!=") && condition.args[1].String() == `""` {
		if left := condition.args[0]; left.is(method, "orValue") && left.args[1].String() == `""` {
			return left
		}
	}
	return nil
}

// PlainMetadata is an expression in which an entry of labels or annotations is a.metadata.labels[?b], where
// there are any, instead of a.metadata.?labels[b].
func PlainMetadata(e Expr) Expr {
	if e.op == relation && e.args[0].is(method, "orValue") {
		entry, value := e.args[0].args[0], e.args[0].args[1]
		labels := labelsOf(entry)
		if absent, ok := constants(e.name, value, e.args[1]); ok && labels != nil {
			holds := Binary(e.name, OrValue(OptionalIndex(labels, entry.args[1]), value), e.args[1])
			if absent {
				return Or(Not(Call("has", labels)), holds)
			}
			return And(Call("has", labels), holds)
		}
	}
	return e.Map(PlainMetadata)
}

// labelsOf are the labels or annotations of metadata, without optionals, of which an optional is an entry.
func labelsOf(entry Expr) Expr {
	if !IsOptional(entry) || entry.op != indexing {
		return nil
	}
	all := withoutOptionals(entry.args[0])
	if all.op != selection || all.name != "labels" && all.name != "annotations" ||
		all.args[0].name != "metadata" || !IsPath(all) {
		return nil
	}
	return all
}

// withoutOptionals is a.b of a.?b.
func withoutOptionals(optional Expr) Expr {
	return Rewrite(optional, func(part Expr) Expr {
		out := *part
		out.optional = false
		return &out
	})
}

// Not negates a condition.
func Not(condition Expr) Expr {
	if value, ok := BoolOf(condition); ok {
		return Bool(!value)
	}
	opposite := *condition
	switch {
	case condition.is(prefix, "!"):
		return condition.args[0]
	case condition.is(relation, "=="):
		opposite.name = "!="
		return &opposite
	case condition.is(relation, "!="),
		condition.is(relation, ">") && isSize(condition.args[0]) && Same(condition.args[1], Int(0)):
		opposite.name = "=="
		return &opposite
	}
	return &Node{op: prefix, name: "!", args: []Expr{condition}}
}

func isSize(e Expr) bool { return e.is(method, "size") || e.is(calling, "size") }

// Minus is -number.
func Minus(number Expr) Expr { return &Node{op: prefix, name: "-", args: []Expr{number}} }

// Cond is test ? then : otherwise, or the other way round where the test is a negation.
func Cond(test, then, otherwise Expr) Expr {
	if test.is(prefix, "!") {
		test, then, otherwise = test.args[0], otherwise, then
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
	case Same(then, otherwise):
		return then
	}
	if test.is(chain, "||") {
		test = Parentheses(test)
	}
	return &Node{op: choice, args: []Expr{test, then, otherwise}}
}

// Parentheses are written around a condition that is made of others.
func Parentheses(condition Expr) Expr {
	if condition.op == chain || condition.op == choice {
		return &Node{op: parentheses, args: []Expr{condition}}
	}
	return condition
}

// List is a list. Where its items are not of one type they are written as dyn(item), since CEL's lists
// are of one type.
func List(items ...Expr) Expr { return &Node{op: listing, args: homogeneous(items)} }

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
	return Object("", entries...)
}

// Object is an object of a type, such as Object.spec or JSONPatch; without a type it is a map.
func Object(typ string, fields ...Entry) Expr {
	return &Node{op: object, name: typ, entries: fields}
}

// Strings is a list of constants.
func Strings(values ...string) Expr {
	items := make([]Expr, len(values))
	for i, v := range values {
		items[i] = String(v)
	}
	return Elements(items...)
}

// Elements is a list whose items are of one type.
func Elements(items ...Expr) Expr { return &Node{op: listing, args: items} }

// homogeneous marks items as dynamic unless they are of one type.
func homogeneous(items []Expr) []Expr {
	types := map[string]bool{}
	for i, item := range items {
		typ := typeInList(item)
		if typ == "" { // which nothing else is sure to be
			typ = fmt.Sprint(i)
		}
		types[typ] = true
	}
	if len(types) < 2 {
		return items
	}
	out := slices.Clone(items)
	for i, item := range items {
		if kindInList(item) != Dyn {
			out[i] = Call("dyn", item)
		}
	}
	return out
}

// typeInList is equal for expressions that may be in one list; empty for lists and maps whose elements are
// not known.
func typeInList(e Expr) string {
	parts, form := e.args, "[%s]"
	switch kind := kindInList(e); {
	case e.op == object && e.name == "":
		form, parts = "{%s}", nil
		for _, entry := range e.entries {
			parts = append(parts, entry.Value)
		}
	case kind == ListKind && e.op != listing || kind == MapKind:
		return ""
	case kind != ListKind:
		return fmt.Sprint(kind)
	}
	if len(parts) == 0 {
		return fmt.Sprintf(form, "")
	}
	return fmt.Sprintf(form, typeInList(parts[0]))
}

// kindInList is what CEL's type checker takes an element of a list for. A part of the object with a default
// may be anything, whatever the default is.
func kindInList(item Expr) Kind {
	if item.is(method, "orValue") {
		if of := item.args[0]; of.op == choice && of.kind == Dyn || KindOf(item.args[1]) == NullKind {
			return openKind
		}
		return Dyn
	}
	return KindOf(item)
}

// Typed is an expression whose kind is known, such as that of a field that CEL declares.
func Typed(e Expr, kind Kind) Expr {
	out := *e
	out.kind = kind
	return &out
}

// IsPath reports whether an expression is a part of the object, so that its type is not known before it is
// evaluated.
func IsPath(e Expr) bool {
	for e.kind == Dyn && (e.op == selection || e.op == indexing) {
		e = e.args[0]
	}
	return e.is(variable, "object") || e.is(variable, "oldObject")
}

// Same reports whether two expressions are written alike; nil is not the same as true.
func Same(a, b Expr) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.String() == b.String()
}

// EqualTo returns what a condition compares an expression with: b of a == b.
func EqualTo(condition, a Expr) (b Expr, ok bool) {
	if !condition.is(relation, "==") || !Same(condition.args[0], a) {
		return nil, false
	}
	return condition.args[1], true
}

// IsNotEqual reports whether a condition is a != b, or a choice by one.
func IsNotEqual(condition Expr) bool {
	if condition.op == choice {
		condition = condition.args[0]
	}
	return condition.is(relation, "!=")
}

// IsIdentifier reports whether a name can follow a dot.
func IsIdentifier(name string) bool {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || name[0] <= '9' {
		return false
	}
	return !slices.Contains([]string{"in", "true", "false", "null"}, name)
}

// Compare compares two expressions as they are written.
func Compare(a, b Expr) int { return strings.Compare(a.String(), b.String()) }

// Contains reports whether an expression is among others.
func Contains(all []Expr, e Expr) bool {
	return slices.ContainsFunc(all, func(other Expr) bool { return Same(other, e) })
}
