package expr

import (
	"slices"
	"strings"
)

const (
	// Width is where a line is broken, if it can be.
	Width = 100
	// narrowest is how short lines get where expressions lie deep in others.
	narrowest = 40
	// shortest is how long brackets are at least that are broken.
	shortest = 20
	// emptyAddedMore is how much longer than others the line may get of an operation that makes an empty map or list, which
	// says too little for a line for each of its fields.
	emptyAddedMore = 40
)

// piece is a part of an expression outside of all brackets, or one of its pairs of brackets with what is in them.
type piece struct {
	text     string
	brackets *Node // nil for a part outside of brackets
}

// String writes an expression on one line; nil is true.
func (e *Node) String() string {
	if e == nil {
		return "true"
	}
	return textOf(e.pieces())
}

func textOf(pieces []piece) string {
	if len(pieces) == 1 {
		return pieces[0].text
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// at is an expression where an operator binds with a precedence.
func (e *Node) at(precedence int) Expr {
	if e.precedence() < precedence {
		return &Node{op: parentheses, args: []Expr{e}}
	}
	return e
}

// operands are those of an operator, of sums those of all of its signs, with parentheses where they need them.
func (e *Node) operands() []Expr {
	binds := e.precedence()
	switch {
	case e.op == choice:
		return []Expr{e.args[0].at(bindsOr), e.args[1].at(bindsOr), e.args[2].at(bindsChoice)}
	case e.op == relation && e.name == "+" && e.args[0].op == relation && e.args[0].name == "+":
		return append(e.args[0].operands(), e.args[1].at(binds+1))
	case e.op == relation:
		return []Expr{e.args[0].at(binds), e.args[1].at(binds + 1)}
	}
	out := make([]Expr, len(e.args))
	for i := range e.args {
		out[i] = e.args[i].at(binds + 1)
	}
	return out
}

// pieces are the parts of an expression in their order.
func (e *Node) pieces() []piece {
	mark := ""
	if e.optional {
		mark = "?"
	}
	switch e.op {
	case constant, variable:
		return []piece{{text: e.name}}
	case selection:
		return append(e.args[0].at(bindsMember).pieces(), piece{text: "." + mark + e.name})
	case indexing:
		return append(e.args[0].at(bindsMember).pieces(), piece{text: "[" + mark + e.args[1].String() + "]"})
	case method:
		return append(e.args[0].at(bindsMember).pieces(), piece{text: "." + e.name}, e.bracketed())
	case prefix:
		return append([]piece{{text: e.name}}, e.args[0].at(bindsPrefix).pieces()...)
	case calling, object:
		return []piece{{text: e.name}, e.bracketed()}
	case listing, parentheses:
		return []piece{e.bracketed()}
	case relation, chain, choice:
	}
	var out []piece
	for i, operand := range e.operands() {
		if i > 0 {
			out = append(out, piece{text: " " + e.operator(i) + " "})
		}
		out = append(out, operand.pieces()...)
	}
	return out
}

// operator is that before an operand.
func (e *Node) operator(i int) string {
	switch {
	case e.op != choice:
		return e.name
	case i == 1:
		return "?"
	}
	return ":"
}

func (e *Node) bracketed() piece {
	opening, closing := e.ends()
	return piece{text: opening + strings.Join(e.items(), ", ") + closing, brackets: e}
}

func (e *Node) ends() (opening, closing string) {
	switch e.op {
	case listing:
		return "[", "]"
	case object:
		return "{", "}"
	}
	return "(", ")"
}

// inside are the expressions in the brackets of a call, a list or parentheses.
func (e *Node) inside() []Expr {
	if e.op == method {
		return e.args[1:]
	}
	return e.args
}

// items are what stands in the brackets.
func (e *Node) items() []string {
	var out []string
	for _, entry := range e.entries {
		out = append(out, entry.label()+": "+entry.Value.String())
	}
	for _, arg := range e.inside() {
		if e.op == object {
			break
		}
		out = append(out, arg.String())
	}
	return out
}

func (e Entry) label() string {
	label := e.Name
	if e.Key != nil {
		label = e.Key.String()
	}
	if e.Optional {
		return "?" + label
	}
	return label
}

// Format writes an expression, over several lines where it is longer than room: they break at its operators and in its
// brackets, and none ends with a line break.
func Format(e Expr, room int) string { return e.format(room) }

func (e *Node) format(room int) string {
	text := e.String()
	if len(text) <= room {
		return text
	}
	room = max(room, narrowest)
	switch {
	case e.op == choice:
		of := e.operands()
		return of[0].format(room) + "\n  ? " + indented(of[1].format(room-4), "    ") + "\n  : " + indented(of[2].format(room-4), "    ")
	case e.breaks():
		var parts []string
		for _, operand := range e.operands() {
			parts = append(parts, operand.format(room-len(e.name)-2))
		}
		return strings.Join(parts, " "+e.name+"\n")
	case e.addsEmpty() && len(text) <= room+emptyAddedMore:
		return text
	}
	return formatted(e.pieces(), room)
}

// breaks reports whether an expression has operators that lines are broken at.
func (e *Node) breaks() bool {
	return e.op == choice || e.op == chain || e.op == relation && e.name == "+"
}

// addsEmpty reports whether an expression is the list of the one operation that adds an empty map or list.
func (e *Node) addsEmpty() bool {
	if e.op != listing || len(e.args) != 1 || e.args[0].name != "JSONPatch" || len(e.args[0].entries) < 3 {
		return false
	}
	value := e.args[0].entries[2].Value
	return value.op == listing && len(value.args) == 0 || value.op == object && value.name == "" && len(value.entries) == 0
}

func indented(text, by string) string { return strings.ReplaceAll(text, "\n", "\n"+by) }

// formatted writes parts that no operator stands between.
func formatted(pieces []piece, room int) string {
	if len(textOf(pieces)) <= room {
		return textOf(pieces)
	}
	const many = 3 // are written as Go code is, with a line for each
	calls := calls(pieces)
	first := textOf(calls[0])
	switch {
	case strings.HasPrefix(first, "{") && len(calls) == 2: // each entry of a literal
		return formatted(calls[0], min(room, len(first)-1)) + formattedBrackets(calls[1], room)
	case strings.HasPrefix(first, "(") && len(calls) > 1 && len(first) > room: // a sum of lists
		return formatted(calls[0], room) + formatted(slices.Concat(calls[1:]...), room)
	case len(calls) > many:
		lines := make([]string, len(calls))
		for i := range calls {
			lines[i] = formattedBrackets(calls[i], room-2)
		}
		return indented(strings.Join(lines, "\n"), "  ")
	}
	return formattedBrackets(pieces, room)
}

// calls divides parts before each method that is called, such as .map(...).
func calls(pieces []piece) [][]piece {
	var out [][]piece
	from := 0
	for i := 1; i < len(pieces); i++ {
		if b := pieces[i].brackets; b != nil && b.op == method && b.name != "orValue" && i > from+1 {
			out = append(out, pieces[from:i-1])
			from = i - 1
		}
	}
	return append(out, pieces[from:])
}

// formattedBrackets breaks the longest brackets.
func formattedBrackets(pieces []piece, room int) string {
	longest := 0
	for i, p := range pieces {
		if p.brackets != nil && (pieces[longest].brackets == nil || len(p.text) > len(pieces[longest].text)) {
			longest = i
		}
	}
	of := pieces[longest].brackets
	if of == nil || len(pieces[longest].text) <= shortest {
		return textOf(pieces)
	}
	opening, closing := of.ends()
	return textOf(pieces[:longest]) + opening + of.lines(room-2) + "\n" + closing + textOf(pieces[longest+1:])
}

// lines writes what is in brackets, each on a line of its own. The variables of a macro stay on the line of the call.
func (e *Node) lines(room int) string {
	var b strings.Builder
	line := func(text, end string) { b.WriteString("\n  " + indented(text, "  ") + end) }
	for _, entry := range e.entries {
		line(entry.format(room), ",")
	}
	if e.op == object {
		return b.String()
	}
	args, variables := e.inside(), 0
	for e.op != listing && variables < len(args)-1 && args[variables].op == variable {
		variables++
	}
	for i, arg := range args {
		switch {
		case i < variables && i == 0:
			b.WriteString(arg.name + ",")
		case i < variables:
			b.WriteString(" " + arg.name + ",")
		case e.op == listing || i < len(args)-1:
			line(arg.format(room), ",")
		default:
			line(arg.format(room), "")
		}
	}
	return b.String()
}

// format breaks an entry behind its key, or in its value.
func (e Entry) format(room int) string {
	key, value := e.label(), e.Value.String()
	whole := key + ": " + value
	isPointer := e.Key == nil && (key == "path" || key == "from")
	switch {
	case isPointer && len(whole) <= Width: // which is read as one
		return whole
	case e.Value.op == choice && len(whole) > room:
		return key + ":\n  " + indented(e.Value.format(room-2), "  ")
	}
	beside := room - len(key) - 2
	if len(value) > beside && strings.HasSuffix(value, "}") { // what is in brackets begins below the key
		beside = room
	}
	written := e.Value.format(beside)
	if e.Value.breaks() {
		written = indented(written, "  ")
	}
	return key + ": " + written
}
