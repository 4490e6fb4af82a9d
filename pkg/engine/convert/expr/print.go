package expr

import (
	"math"
	"strings"
)

const (
	// Width is the maximum length of a line, if it can be broken.
	Width = 100
	// narrowest is the minimum width of deeply nested expressions.
	narrowest = 40
	// shortest is the minimum length of brackets that are broken.
	shortest = 20
	// operationsAreLonger is the extra width of a line with a single JSON patch operation.
	operationsAreLonger = 40
	// oneLine is the room for unbroken expressions.
	oneLine = math.MaxInt32
)

// String prints an expression on one line; nil is true.
func (e *Node) String() string {
	if e == nil {
		return "true"
	}
	return e.write(oneLine)
}

// Format prints an expression, over several lines if it is longer than room: broken at operators and in
// brackets, without a final line break.
func Format(e Expr, room int) string { return e.write(room) }

func (e *Node) write(room int) string {
	if room < oneLine {
		room = max(room, narrowest)
		text, more := e.String(), 0
		if e.isOperation() {
			more = operationsAreLonger
		}
		if len(text) <= room+more {
			return text
		}
	}
	switch e.op {
	case constant, variable:
		return e.name
	case prefix:
		return e.name + e.args[0].inParentheses(bindsPrefix).write(room-len(e.name))
	case calling, object, listing, parentheses:
		return e.name + e.bracketed(room)
	case chain, relation, choice:
		return e.operation(room)
	case selection, indexing, method:
	}
	of, mark, member := e.args[0].inParentheses(bindsMember), "", ""
	if e.optional {
		mark = "?"
	}
	switch e.op {
	case indexing:
		member = "[" + mark + e.args[1].String() + "]"
	case method:
		member = "." + e.name + e.bracketed(oneLine)
		if room < oneLine && len(member) >= min(len(of.String()), room) { // else the receiver is broken by itself
			return of.write(room) + "." + e.name + e.bracketed(room)
		}
	default:
		member = "." + mark + e.name
	}
	return of.write(less(room, len(member))) + member
}

// isOperation reports whether an expression is a JSON patch operation, or a list with only one.
func (e *Node) isOperation() bool {
	return e.op == object && e.name == "JSONPatch" ||
		e.op == listing && len(e.args) == 1 && e.args[0].isOperation()
}

// less is the room left after n characters.
func less(room, n int) int {
	if room == oneLine {
		return room
	}
	return room - n
}

// inParentheses adds parentheses to an operand where the precedence requires them.
func (e *Node) inParentheses(precedence int) Expr {
	if e.precedence() < precedence {
		return &Node{op: parentheses, args: []Expr{e}}
	}
	return e
}

// operands returns the operands of an operator or of a whole sum, with the necessary parentheses.
func (e *Node) operands() []Expr {
	binds := e.precedence()
	switch {
	case e.op == choice:
		return []Expr{
			e.args[0].inParentheses(bindsOr), e.args[1].inParentheses(bindsOr),
			e.args[2].inParentheses(bindsChoice),
		}
	case e.op == relation && e.name == "+" && e.args[0].op == relation && e.args[0].name == "+":
		return append(e.args[0].operands(), e.args[1].inParentheses(binds+1))
	case e.op == relation:
		return []Expr{e.args[0].inParentheses(binds), e.args[1].inParentheses(binds + 1)}
	}
	out := make([]Expr, len(e.args))
	for i := range e.args {
		out[i] = e.args[i].inParentheses(binds + 1)
	}
	return out
}

// operation prints an operator and its operands; broken into one line each, except for relations.
func (e *Node) operation(room int) string {
	of := e.operands()
	if e.op == choice {
		if room == oneLine {
			return of[0].String() + " ? " + of[1].String() + " : " + of[2].String()
		}
		return of[0].write(room) + "\n  ? " + indented(of[1].write(room-4), "    ") + "\n  : " +
			indented(of[2].write(room-4), "    ")
	}
	between, parts := " "+e.name+" ", make([]string, len(of))
	if room < oneLine && e.breaks() {
		between = " " + e.name + "\n"
	}
	for i, operand := range of {
		parts[i] = operand.write(less(room, len(between)))
	}
	if room < oneLine && !e.breaks() {
		longer := 0
		if len(of[1].String()) > len(of[0].String()) {
			longer = 1
		}
		parts[longer] = of[longer].write(room - len(between) - len(of[1-longer].String()))
	}
	return strings.Join(parts, between)
}

// breaks reports whether an expression has operators to break lines at.
func (e *Node) breaks() bool {
	return e.op == choice || e.op == chain || e.op == relation && e.name == "+"
}

func indented(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }

// bracketed prints brackets, with each item on its own line if they are longer than room. The variables of a
// macro stay on the line of the call.
func (e *Node) bracketed(room int) string {
	opening, closing := "(", ")"
	switch e.op {
	case listing:
		opening, closing = "[", "]"
	case object:
		opening, closing = "{", "}"
	}
	args := e.args
	if e.op == method {
		args = args[1:]
	}
	if room < oneLine {
		if text := e.bracketed(oneLine); len(text) <= shortest {
			return text
		}
	}
	var first, items []string
	for _, entry := range e.entries {
		items = append(items, entry.write(less(room, 2)))
	}
	for i, arg := range args {
		if arg.op == variable && len(items) == 0 && i < len(args)-1 && e.op != listing {
			first = append(first, arg.name)
			continue
		}
		items = append(items, arg.write(less(room, 2)))
	}
	if room == oneLine || len(items) == 0 {
		return opening + strings.Join(append(first, items...), ", ") + closing
	}
	var b strings.Builder
	b.WriteString(opening + strings.Join(first, ", "))
	if len(first) > 0 {
		b.WriteString(",")
	}
	for i, item := range items {
		b.WriteString("\n  " + indented(item, "  "))
		if i < len(items)-1 || closing != ")" {
			b.WriteString(",")
		}
	}
	return b.String() + "\n" + closing
}

// write breaks an entry after its key or in its value.
func (e Entry) write(room int) string {
	key := e.Name
	if e.Key != nil {
		key = e.Key.String()
	}
	if e.Optional {
		key = "?" + key
	}
	whole := key + ": " + e.Value.String()
	isPointer := e.Key == nil && (key == "path" || key == "from") // printed on one line
	switch {
	case len(whole) <= room, isPointer && len(whole) <= Width:
		return whole
	case e.Value.op == choice:
		return key + ":\n  " + indented(e.Value.write(room-2), "  ")
	case e.Value.breaks():
		return key + ": " + indented(e.Value.write(room-len(key)-2), "  ")
	}
	return key + ": " + e.Value.write(room-len(key)-2)
}
