package expr

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// columns is where lines break.
const columns = 80

// Format writes an expression, over several lines where one does not do; no line ends with a line
// break. A nil expression is true.
func Format(e Expr) string {
	if e == nil {
		e = Bool(true)
	}
	return printer{}.format(simplified(e), 0)
}

// printer writes an expression that starts at a column, in lines that are indented.
type printer struct {
	indent, column int
	tail           int // how much has to follow on the last line
}

func (p printer) newline() string { return "\n" + strings.Repeat(" ", p.indent) }

func (p printer) deeper() printer {
	return printer{indent: p.indent + 2, column: p.indent + 2}
}

func (p printer) after(text string, tail int) printer {
	p.column += utf8.RuneCountInString(text)
	p.tail += tail
	return p
}

// format writes an expression where an operator binds with the precedence.
func (p printer) format(e Expr, precedence int) string {
	if e.precedence() < precedence {
		inner := p.after("(", 1)
		inner.indent++
		return "(" + inner.format(e, 0) + ")"
	}
	text := flat(e)
	if p.column+utf8.RuneCountInString(text)+p.tail <= columns {
		return text
	}
	switch e := e.(type) {
	case chain:
		return p.chain(e)
	case cond:
		return p.cond(e)
	case list:
		return p.block("[", e.items, "]")
	case object:
		return p.object(e)
	case call:
		return p.call(e)
	case binary:
		left := p.format(e.left, e.precedence())
		if strings.Contains(left, "\n") {
			p.column = p.indent + lastLine(left)
		} else {
			p.column += utf8.RuneCountInString(left)
		}
		return left + " " + e.op + " " + p.after("  "+e.op, 0).format(e.right, e.precedence()+1)
	case not:
		return "!" + p.after("!", 0).format(e.of, bindsUnary)
	case typed:
		return p.format(e.Expr, precedence)
	case minus:
		return "-" + p.after("-", 0).format(e.of, bindsUnary)
	case sel, index:
		return p.access(e)
	}
	return text
}

func lastLine(text string) int {
	return utf8.RuneCountInString(text[strings.LastIndexByte(text, '\n')+1:])
}

func (p printer) chain(c chain) string {
	parts := make([]string, len(c.operands))
	for i, operand := range c.operands {
		at := p
		if i > 0 {
			at.column = p.indent
		}
		if i < len(c.operands)-1 {
			at.tail = len(c.op) + 1
		}
		parts[i] = at.format(operand, c.precedence()+1)
	}
	return strings.Join(parts, " "+c.op+p.newline())
}

func (p printer) cond(c cond) string {
	test := printer{indent: p.indent, column: p.column}.format(c.test, bindsOr)
	branch := p.deeper()
	line := branch.newline()
	branch = branch.after("? ", 0)
	branch.indent += 2
	then := branch.format(c.then, bindsOr)
	branch.tail = p.tail
	otherwise := ""
	if next, ok := c.otherwise.(cond); ok { // a chain of alternatives stays at one level
		inner := p
		inner.column = p.indent + 4
		otherwise = inner.format(next, bindsCond)
	} else {
		otherwise = branch.format(c.otherwise, bindsCond)
	}
	return test + line + "? " + then + line + ": " + otherwise
}

// block writes items on a line each, with a comma behind each of them.
func (p printer) block(open string, items []Expr, end string) string {
	if len(items) == 0 {
		return open + end
	}
	var b strings.Builder
	b.WriteString(open)
	inner := p.deeper()
	for _, item := range items {
		b.WriteString(inner.newline() + inner.after("", 1).format(item, 0) + ",")
	}
	return b.String() + p.newline() + end
}

func (p printer) object(o object) string {
	if len(o.entries) == 0 {
		return flat(o)
	}
	var b strings.Builder
	b.WriteString("{")
	inner := p.deeper()
	for _, e := range o.entries {
		key := e.label() + ": "
		b.WriteString(inner.newline() + key + inner.after(key, 1).format(e.Value, 0) + ",")
	}
	return b.String() + p.newline() + "}"
}

func (e Entry) label() string {
	label := e.Name
	if e.Key != nil {
		label = flat(e.Key)
	}
	if e.Optional {
		return "?" + label
	}
	return label
}

// access writes a field or an element of what does not fit in a line.
func (p printer) access(e Expr) string {
	whole := flat(e)
	switch e := e.(type) {
	case sel:
		rest := whole[len(flatAt(e.of, bindsMember)):]
		return p.after("", len(rest)).format(e.of, bindsMember) + rest
	case index:
		rest := whole[len(flatAt(e.of, bindsMember)):]
		return p.after("", len(rest)).format(e.of, bindsMember) + rest
	}
	return whole
}

// call breaks a chain of methods before each of them, and else behind the parenthesis.
func (p printer) call(c call) string {
	links := c.links()
	if len(links) > 1 {
		base := links[0].of
		var b strings.Builder
		b.WriteString(p.format(base, bindsMember))
		inner := p.deeper()
		for _, link := range links {
			head := "." + link.name + "("
			b.WriteString(inner.newline() + head + inner.after(head, 0).args(link.args))
		}
		return b.String()
	}
	head := c.name + "("
	if c.of != nil {
		head = "." + head
		of := p.format(c.of, bindsMember)
		if strings.Contains(of, "\n") {
			p.column = lastLine(of)
		} else {
			p.column += utf8.RuneCountInString(of)
		}
		return of + head + p.after(head, 0).args(c.args)
	}
	return head + p.after(head, 0).args(c.args)
}

// links are the calls of a chain that have arguments worth a line of their own, in the order of
// the text.
func (c call) links() []call {
	var links []call
	for {
		links = append(links, c)
		next, ok := c.of.(call)
		if !ok || next.of == nil {
			break
		}
		c = next
	}
	slices.Reverse(links)
	return links
}

// args writes arguments and the closing parenthesis. A macro's body has lines of its own, below its
// variables.
func (p printer) args(args []Expr) string {
	if len(args) == 0 {
		return ")"
	}
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = flat(arg)
	}
	if joined := strings.Join(texts, ", "); p.column+utf8.RuneCountInString(joined)+1+p.tail <= columns {
		return joined + ")"
	}
	last := len(args) - 1
	if _, isObject := args[last].(object); isObject || last == 0 && isList(args[last]) {
		head := strings.Join(texts[:last], ", ")
		if last > 0 {
			head += ", "
		}
		return head + p.after(head, 1).format(args[last], 0) + ")"
	}
	head := strings.Join(texts[:last], ", ")
	if last > 0 {
		head += ","
	}
	inner := p.deeper()
	inner.tail = p.tail + 1
	return head + inner.newline() + inner.format(args[last], 0) + ")"
}

func isList(e Expr) bool { _, ok := e.(list); return ok }

// flat writes an expression on one line.
func flat(e Expr) string {
	switch e := e.(type) {
	case literal:
		return e.text
	case sel:
		return flatAt(e.of, bindsMember) + "." + optionalMark(e.optional) + e.name
	case index:
		return flatAt(e.of, bindsMember) + "[" + optionalMark(e.optional) + flat(e.key) + "]"
	case call:
		text := e.name + "(" + flatAll(e.args) + ")"
		if e.of != nil {
			return flatAt(e.of, bindsMember) + "." + text
		}
		return text
	case binary:
		return flatAt(e.left, e.precedence()) + " " + e.op + " " + flatAt(e.right, e.precedence()+1)
	case chain:
		parts := make([]string, len(e.operands))
		for i, operand := range e.operands {
			parts[i] = flatAt(operand, e.precedence()+1)
		}
		return strings.Join(parts, " "+e.op+" ")
	case not:
		return "!" + flatAt(e.of, bindsUnary)
	case typed:
		return flat(e.Expr)
	case minus:
		return "-" + flatAt(e.of, bindsUnary)
	case cond:
		return flatAt(e.test, bindsOr) + " ? " + flatAt(e.then, bindsOr) + " : " + flatAt(e.otherwise, bindsCond)
	case list:
		return "[" + flatAll(e.items) + "]"
	case object:
		parts := make([]string, len(e.entries))
		for i, entry := range e.entries {
			parts[i] = entry.label() + ": " + flat(entry.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return ""
}

func flatAt(e Expr, precedence int) string {
	if e.precedence() < precedence {
		return "(" + flat(e) + ")"
	}
	return flat(e)
}

func flatAll(all []Expr) string {
	parts := make([]string, len(all))
	for i, e := range all {
		parts[i] = flat(e)
	}
	return strings.Join(parts, ", ")
}

// Size is how many parts an expression is written with; not more than limit are counted.
func Size(e Expr, limit int) int {
	n := 1
	for _, part := range parts(e) {
		if n >= limit {
			return limit
		}
		n += Size(part, limit-n)
	}
	return n
}

// parts are what an expression is made of.
func parts(e Expr) []Expr {
	switch e := e.(type) {
	case sel:
		return []Expr{e.of}
	case index:
		return []Expr{e.of, e.key}
	case call:
		return append([]Expr{e.of}, e.args...)
	case binary:
		return []Expr{e.left, e.right}
	case chain:
		return e.operands
	case not:
		return []Expr{e.of}
	case minus:
		return []Expr{e.of}
	case typed:
		return []Expr{e.Expr}
	case cond:
		return []Expr{e.test, e.then, e.otherwise}
	case list:
		return e.items
	case object:
		out := make([]Expr, len(e.entries))
		for i := range e.entries {
			out[i] = e.entries[i].Value
		}
		return out
	}
	return nil
}

func optionalMark(optional bool) string {
	if optional {
		return "?"
	}
	return ""
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
