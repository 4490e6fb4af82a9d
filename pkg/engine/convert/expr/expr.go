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

// Node is a CEL expression or a part of one.
type Node struct {
	op   operation
	name string // of a constant, variable, field, function or operator; the type of an object
	// args are the operands; the first one is the receiver of a field, an element or a method.
	args     []Expr
	entries  []Entry // of an object or a map
	kind     Kind    // of a constant, and if known from elsewhere
	optional bool    // of a field or an element: a.?b
}

// operation is the kind of a Node.
type operation int

const (
	constant    operation = iota
	variable              // object, or a macro variable
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

// Entry is a field of an object or an entry of a map.
type Entry struct {
	Name  string // of a field
	Key   Expr   // of a map
	Value Expr
	// Optional reports that Value is an optional: an absent one leaves the entry out.
	Optional bool
}

// The precedences of the operators.
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

// precedence decides whether the expression needs parentheses.
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

// is reports whether an expression is the named function, method or operator.
func (e *Node) is(op operation, name string) bool {
	return e != nil && e.op == op && e.name == name && e.kind == Dyn
}

// Map applies a function to each operand of the expression.
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

// Rewrite replaces the parts of an expression bottom-up.
func Rewrite(e Expr, f func(part Expr) Expr) Expr {
	return f(e.Map(func(part Expr) Expr { return Rewrite(part, f) }))
}

// Replace replaces each part of an expression that equals another one.
func Replace(e, part, by Expr) Expr {
	return Rewrite(e, func(e Expr) Expr {
		if Same(e, part) {
			return by
		}
		return e
	})
}

// Given simplifies an expression whose conditions are known to hold: it drops them, and in a macro over a
// list also conditions that hold for all its elements.
func Given(e Expr, known []Expr) Expr {
	known = Operands(And(known...), "&&")
	if e.op != constant &&
		(Contains(known, e) || slices.ContainsFunc(known, func(by Expr) bool { return givenBy(e, by) })) {
		return Bool(true)
	}
	body := slices.DeleteFunc(slices.Clone(known), func(k Expr) bool { // about another variable of the same name
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

// macroParts returns the list and the variable of a macro; nil for other expressions.
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

// Fields returns the fields of an object of a type; none for other expressions.
func Fields(e Expr, typ string) []Entry {
	if e.op != object || e.name != typ {
		return nil
	}
	return slices.Clone(e.entries)
}

// Mentions reports whether an expression contains a part.
func Mentions(e, part Expr) bool {
	found := Same(e, part)
	e.Map(func(e Expr) Expr { found = found || Mentions(e, part); return e })
	return found
}

// Unwrapped is the argument of a function call, or the expression itself if it is another one.
func Unwrapped(e Expr, function string) Expr {
	if e.is(calling, function) && len(e.args) == 1 {
		return e.args[0]
	}
	return e
}

// CutMethod returns the receiver of a method call with the given arguments.
func CutMethod(e Expr, name string, args ...Expr) (of Expr, found bool) {
	if e.is(method, name) && Same(e, Method(e.args[0], name, args...)) {
		return e.args[0], true
	}
	return e, false
}

// Size counts the parts of an expression, up to a limit.
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

// Name is a variable, such as object or a macro variable.
func Name(name string) Expr { return &Node{op: variable, name: name} }

// Path is a variable with fields, such as request.?namespace.
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

// Variable is a policy variable.
func Variable(name string) Expr { return Field(Name("variables"), name) }

// Field selects a field of any name: a.b, or a["b/c"].
func Field(of Expr, name string) Expr {
	if !IsIdentifier(name) {
		return Index(of, String(name))
	}
	return &Node{op: selection, name: name, args: []Expr{of}}
}

// OptionalField selects an optional field: a.?b. After another optional it is plain, since fields of an
// optional are optional too.
func OptionalField(of Expr, name string) Expr {
	if !IsIdentifier(name) {
		return OptionalIndex(of, String(name))
	}
	return &Node{op: selection, name: name, args: []Expr{of}, optional: !IsOptional(of)}
}

// Index selects a list element or a map entry: a[b].
func Index(of, key Expr) Expr { return &Node{op: indexing, args: []Expr{of, key}} }

// OptionalIndex selects an optional element or entry: a[?b], or a[b] of an optional.
func OptionalIndex(of, key Expr) Expr {
	return &Node{op: indexing, args: []Expr{of, key}, optional: !IsOptional(of)}
}

// Marked marks an optional field or element with ? even after another optional.
func Marked(e Expr) Expr {
	out := *e
	out.optional = true
	return &out
}

// Call calls a function.
func Call(name string, args ...Expr) Expr { return &Node{op: calling, name: name, args: args} }

// Flattened joins the lists in a list. dyn() hides the unresolved element type, for which the type checker
// would choose the first overload of a function.
func Flattened(list Expr) Expr { return Call("dyn", Method(list, "flatten")) }

// Method calls a method or a macro: of.name(args). Calls on constant strings are evaluated.
func Method(of Expr, name string, args ...Expr) Expr {
	if text, ok := StringOf(of); ok && len(args) == 1 {
		if arg, ok := StringOf(args[0]); ok && tests[name] != nil {
			return Bool(tests[name](text, arg))
		}
	}
	return &Node{op: method, name: name, args: append([]Expr{of}, args...)}
}

// tests are the boolean methods of strings.
var tests = map[string]func(text, arg string) bool{ //nolint:gochecknoglobals // an immutable table
	"startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix, "contains": strings.Contains,
	"matches": func(text, expression string) bool { return regexp.MustCompile(expression).MatchString(text) },
}

// Macro calls of.name(variable, body), such as exists or map.
func Macro(of Expr, name, variable string, body Expr) Expr {
	return Method(of, name, Name(variable), body)
}

// OrValue is the value of an optional or a default.
func OrValue(optional, or Expr) Expr { return Method(optional, "orValue", or) }

// HasValue reports whether an optional has a value.
func HasValue(optional Expr) Expr { return Method(optional, "hasValue") }

// Binary is an arithmetic operator or a relation: + - * / % == != < <= > >= in. Relations of constants are
// evaluated.
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
	// the type checker does not compare the two
	if KindOf(left) == Double && right.op == constant && right.kind == Integer {
		right = &Node{name: right.name + ".0", kind: Double}
	}
	equality := op == "==" || op == "!="
	if a, b := KindOf(left), KindOf(right); equality && a != b && a != Dyn && b != Dyn {
		left = Call("dyn", left) // so that the type checker accepts the comparison
	}
	isCall := left.kind == Dyn && (left.op == calling || left.op == method)
	if isCall && equality && (right.op == listing || right.op == object) && !IsOptional(left) &&
		left.name != "orValue" {
		left = Call("dyn", left) // for a list of another type than the constant
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

// constants evaluates a relation of constants.
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

// comparedWithBool simplifies the comparison of a boolean with a constant.
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

// Sum adds one or more expressions.
func Sum(all ...Expr) Expr {
	out := all[0]
	for _, e := range all[1:] {
		out = Binary("+", out, e)
	}
	return out
}

// Terms returns the summands of a sum, or the expression itself.
func Terms(sum Expr) []Expr {
	if !sum.is(relation, "+") {
		return []Expr{sum}
	}
	return append(Terms(sum.args[0]), sum.args[1])
}

// And is the conjunction of conditions, without nil, true and duplicates.
func And(conditions ...Expr) Expr { return join("&&", conditions) }

// Or is the disjunction of conditions.
func Or(conditions ...Expr) Expr { return join("||", conditions) }

// join returns true for an empty &&, and false for an empty ||.
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

// Operands returns the operands of a chain of && or ||, or the condition itself.
func Operands(condition Expr, op string) []Expr {
	switch {
	case condition == nil:
		return []Expr{Bool(true)}
	case condition.op == chain && condition.name == op:
		return condition.args
	}
	return []Expr{condition}
}

// Range simplifies the range of a macro: a map instead of the list of its keys, in any order.
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

// givenBy reports whether a condition is implied: a.hasValue() by a.b.hasValue(), or a != "" by a == "x".
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

// orNothing turns a.b == "x" into a.?b.orValue("") == "x" if others check that it is empty.
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

// notEmpty returns a.orValue("") for a.orValue("") != "", and nil for other conditions.
func notEmpty(condition Expr) (asked Expr) {
	if condition.is(relation, "!=") && condition.args[1].String() == `""` {
		if left := condition.args[0]; left.is(method, "orValue") && left.args[1].String() == `""` {
			return left
		}
	}
	return nil
}

// PlainMetadata replaces a.metadata.?labels[b] by a.metadata.labels[?b] for existing labels or annotations.
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

// labelsOf returns the labels or annotations of an optional entry, without optionals.
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

// withoutOptionals turns a.?b into a.b.
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

// Cond is test ? then : otherwise; a negated test swaps the branches.
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

// Parentheses encloses a compound condition.
func Parentheses(condition Expr) Expr {
	if condition.op == chain || condition.op == choice {
		return &Node{op: parentheses, args: []Expr{condition}}
	}
	return condition
}

// List is a list. Items of different types are wrapped in dyn(), since a CEL list has one element type.
func List(items ...Expr) Expr { return &Node{op: listing, args: homogeneous(items)} }

// Map is a map with values as in List.
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

// Object is an object of a type, such as Object.spec or JSONPatch, or a map without a type.
func Object(typ string, fields ...Entry) Expr {
	return &Node{op: object, name: typ, entries: fields}
}

// Strings is a list of constant strings.
func Strings(values ...string) Expr {
	items := make([]Expr, len(values))
	for i, v := range values {
		items[i] = String(v)
	}
	return Elements(items...)
}

// Elements is a list of items of one type.
func Elements(items ...Expr) Expr { return &Node{op: listing, args: items} }

// homogeneous wraps items of different types in dyn().
func homogeneous(items []Expr) []Expr {
	types := map[string]bool{}
	for i, item := range items {
		typ := typeInList(item)
		if typ == "" { // no other item certainly has its type
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

// typeInList is equal for expressions that may share a list; empty for lists and maps with unknown elements.
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

// kindInList is the element type for CEL's type checker. A field of the object with a default may have any
// type, whatever the default.
func kindInList(item Expr) Kind {
	if item.is(method, "orValue") {
		if of := item.args[0]; of.op == choice && of.kind == Dyn || KindOf(item.args[1]) == NullKind {
			return openKind
		}
		return Dyn
	}
	return KindOf(item)
}

// Typed sets the known kind of an expression, such as a field that CEL declares.
func Typed(e Expr, kind Kind) Expr {
	out := *e
	out.kind = kind
	return &out
}

// IsPath reports whether an expression is a part of the object, so that its type is unknown before
// evaluation.
func IsPath(e Expr) bool {
	for e.kind == Dyn && (e.op == selection || e.op == indexing) {
		e = e.args[0]
	}
	return e.is(variable, "object") || e.is(variable, "oldObject")
}

// Same reports whether two expressions print alike; nil differs from true.
func Same(a, b Expr) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.String() == b.String()
}

// EqualTo returns the value that a condition compares with: b for a == b.
func EqualTo(condition, a Expr) (b Expr, ok bool) {
	if !condition.is(relation, "==") || !Same(condition.args[0], a) {
		return nil, false
	}
	return condition.args[1], true
}

// IsNotEqual reports whether a condition is a != b, or a conditional on it.
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

// Compare orders two expressions by their printed form.
func Compare(a, b Expr) int { return strings.Compare(a.String(), b.String()) }

// Contains reports whether a list contains the expression.
func Contains(all []Expr, e Expr) bool {
	return slices.ContainsFunc(all, func(other Expr) bool { return Same(other, e) })
}
