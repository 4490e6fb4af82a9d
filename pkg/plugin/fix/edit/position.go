package edit

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// start returns the offset of a node, including its anchor and tag.
func (e *editor) start(n *yamlv3.Node) int {
	at := e.lines[n.Line-1]
	for range n.Column - 1 { // in characters
		_, size := utf8.DecodeRune(e.text[at:])
		at += size
	}
	return at
}

// content returns the offset of a node without its anchor and tag.
func (e *editor) content(n *yamlv3.Node) int {
	at := e.start(n)
	for at < len(e.text) && (e.text[at] == '&' || e.text[at] == '!') {
		properties := at
		for at < len(e.text) && !bytes.ContainsRune([]byte(" \t\r\n"), rune(e.text[at])) &&
			(!isFlow(n) || e.text[at] != '{' && e.text[at] != '[') {
			at++
		}
		if n.Kind == yamlv3.ScalarNode && n.Value == "" && e.skip(at) > e.lineEnd(properties) {
			return at // empty
		}
		at = e.skip(at)
	}
	return at
}

// skip returns the offset after white space and comments.
func (e *editor) skip(at int) int {
	for at < len(e.text) {
		switch c := e.text[at]; {
		case c == ' ', c == '\t', c == '\r', c == '\n':
			at++
		case c == '#' && (at == 0 || bytes.IndexByte([]byte(" \t\n"), e.text[at-1]) >= 0):
			at = e.lineEnd(at)
		default:
			return at
		}
	}
	return at
}

// end returns the offset after a node; for a block scalar, before its last line break.
func (e *editor) end(n *yamlv3.Node) int {
	if known, ok := e.ends[n]; ok {
		return known
	}
	at := e.findEnd(n)
	e.ends[n] = at
	return at
}

func (e *editor) findEnd(n *yamlv3.Node) int {
	switch {
	case n.Kind == yamlv3.AliasNode:
		return e.start(n) + len("*") + len(n.Value)
	case n.Kind == yamlv3.ScalarNode:
		return e.scalarEnd(n)
	case !isFlow(n):
		return e.end(n.Content[len(n.Content)-1])
	}
	at := e.content(n)
	if c := e.text[at]; c != '{' && c != '[' { // a pair in a sequence: [a: b]
		return e.end(n.Content[len(n.Content)-1])
	}
	at++
	if last := len(n.Content) - 1; last >= 0 {
		at = max(at, e.end(n.Content[last]))
	}
	if at = e.skip(at); e.text[at] == ',' {
		at = e.skip(at + 1)
	}
	if c := e.text[at]; c != '}' && c != ']' {
		e.refuse(n, "the end of what begins here is not found")
	}
	return at + 1
}

func (e *editor) scalarEnd(n *yamlv3.Node) int {
	at := e.content(n)
	switch {
	case n.Style&yamlv3.SingleQuotedStyle != 0:
		for at++; ; at++ {
			if e.text[at] != '\'' {
				continue
			}
			if at+1 == len(e.text) || e.text[at+1] != '\'' {
				return at + 1
			}
			at++
		}
	case n.Style&yamlv3.DoubleQuotedStyle != 0:
		for at++; e.text[at] != '"'; at++ {
			if e.text[at] == '\\' {
				at++
			}
		}
		return at + 1
	case isBlockScalar(n):
		return e.blockLines(n).end
	case bytes.HasPrefix(e.text[at:], []byte(n.Value)):
		return at + len(n.Value)
	}
	return e.foldedEnd(n, at)
}

// foldedEnd returns the end of a plain scalar on several lines, in which one line break is a space, and n
// are n-1.
func (e *editor) foldedEnd(n *yamlv3.Node, at int) int {
	for value := n.Value; value != ""; {
		if e.text[at] == value[0] && value[0] != '\n' {
			space := at
			for e.text[space] == ' ' || e.text[space] == '\t' {
				space++
			}
			if c := e.text[space]; space == at || c != '\n' && c != '\r' {
				at, value = at+1, value[1:]
				continue
			}
		}
		space := at
		for bytes.IndexByte([]byte(" \t\r\n"), e.text[space]) >= 0 {
			space++
		}
		breaks := bytes.Count(e.text[at:space], []byte("\n"))
		wanted := " "
		if breaks > 1 {
			wanted = strings.Repeat("\n", breaks-1)
		}
		rest, found := strings.CutPrefix(value, wanted)
		if breaks == 0 || !found {
			e.refuse(n, "the end of the text that begins here is not found")
		}
		at, value = space, rest
	}
	return at
}

// block has the positions of a block scalar.
type block struct {
	header int // the offset of | or >
	// lines are the offsets of the lines of the content, and of the end.
	lines  []int
	indent int // of the content, in bytes; 0 if it is empty
	end    int
}

// blockLines finds the lines of a block scalar. Trailing empty lines belong to it if its header keeps them.
func (e *editor) blockLines(n *yamlv3.Node) block {
	b := block{header: e.content(n)}
	at := e.nextLine(b.header)
	b.lines = append(b.lines, at)
	last := 0 // number of lines up to the last one with content
	partEnd := e.part.Offset + len(e.part.Text)
	for at < partEnd {
		line := e.text[at:e.lineEnd(at)]
		spaces := len(line) - len(bytes.TrimLeft(line, " "))
		empty := len(bytes.TrimRight(line[spaces:], "\r")) == 0
		if !empty && b.indent == 0 {
			first := strings.TrimLeft(n.Value, "\n")
			if first == "" {
				break
			}
			if b.indent = spaces - (len(first) - len(strings.TrimLeft(first, " "))); b.indent <= 0 {
				e.refuse(n, "the indentation of the text below is not found")
			}
		}
		if !empty && spaces < b.indent {
			break
		}
		at = e.nextLine(at)
		if b.lines = append(b.lines, at); !empty {
			last = len(b.lines) - 1
		}
	}
	if header := string(e.text[b.header:e.lineEnd(b.header)]); !strings.Contains(strings.SplitN(header,
		"#", 2)[0], "+") {
		b.lines = b.lines[:last+1]
	}
	b.end = b.lines[len(b.lines)-1]
	if b.end > 0 && e.text[b.end-1] == '\n' {
		b.end--
	}
	if b.end > 0 && e.text[b.end-1] == '\r' {
		b.end--
	}
	return b
}

// lineStart returns the offset of the first byte of a line.
func (e *editor) lineStart(at int) int { return bytes.LastIndexByte(e.text[:at], '\n') + 1 }

// lineEnd returns the offset of the line break, or of the end of the file.
func (e *editor) lineEnd(at int) int {
	if i := bytes.IndexByte(e.text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(e.text)
}

// nextLine returns the offset after the line break, or the end of the file.
func (e *editor) nextLine(at int) int { return min(e.lineEnd(at)+1, len(e.text)) }

// alone reports whether only white space precedes an offset on its line.
func (e *editor) alone(at int) bool { return e.blank(e.lineStart(at), at) }

// blank reports whether a range is white space.
func (e *editor) blank(start, end int) bool { return len(bytes.TrimSpace(e.text[start:end])) == 0 }

// comments reports whether a range may have comments.
func (e *editor) comments(start, end int) bool {
	for at := start; at < end; at++ {
		if e.text[at] == '#' && (at == 0 || bytes.IndexByte([]byte(" \t\n"), e.text[at-1]) >= 0) {
			return true
		}
	}
	return false
}

// Field returns a path as engine.Document.Line takes it, as far as it exists in an object.
func Field(object any, path fieldpath.Path) string {
	var b strings.Builder
	for _, e := range path {
		if e.FieldName == nil {
			list, _ := object.([]any)
			i := diff.Index(list, e)
			if i < 0 {
				break
			}
			fmt.Fprintf(&b, "[%d]", i)
			object = list[i]
			continue
		}
		fields, _ := object.(map[string]any)
		below, has := fields[*e.FieldName]
		if !has {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(*e.FieldName)
		object = below
	}
	return b.String()
}
