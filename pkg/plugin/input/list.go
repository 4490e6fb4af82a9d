package input

import (
	"bytes"
	"regexp"
	"slices"
)

// list is the text of a YAML document whose top-level "items" is a list.
type list struct {
	rest     part   // the document, with the placeholder for its elements
	elements []part // each is a sequence of one element
}

// placeholder stands for the elements in the rest of a list.
const placeholder = "elements-that-are-read-one-by-one"

// blockStart matches the start of a document whose first line is a key: a mapping in block style.
var blockStart = regexp.MustCompile(`\A(?:[ \t]*(?:#.*)?\r?\n)*[A-Za-z]+:(?:[ \t\r\n]|$)`)

// itemsKey is the line in front of the elements.
const itemsKey = "items:\n"

// cutList cuts a document in block style, as kubectl prints it, at the elements of its list. It
// looks at indentation alone; decode finds out whether the text means what it looks like.
func cutList(p part) (list, bool) {
	start := findLine(p.text, []byte(itemsKey))
	if start < 0 || !blockStart.Match(p.text) || bytes.Contains(p.text, []byte(placeholder)) || otherBreaks(p.text) {
		return list{}, false
	}
	end := start + len(itemsKey)
	elements, size := cutElements(part{text: p.text[end:], line: p.line + bytes.Count(p.text[:end], []byte("\n"))})
	text := slices.Concat(p.text[:start], []byte("items: "+placeholder+"\n"), p.text[end+size:])
	return list{rest: part{text: text, line: p.line}, elements: elements}, len(elements) > 0
}

// otherBreaks reports whether YAML sees the end of a line in a text where a file has none.
func otherBreaks(text []byte) bool {
	for _, b := range []string{"\u0085", "\u2028", "\u2029"} {
		if bytes.Contains(text, []byte(b)) {
			return true
		}
	}
	return bytes.Count(text, []byte("\r")) > bytes.Count(text, []byte("\r\n"))
}

// findLine returns where a line starts in a text; -1 if it is not there.
func findLine(text, line []byte) int {
	if bytes.HasPrefix(text, line) {
		return 0
	}
	at := bytes.Index(text, slices.Concat([]byte("\n"), line))
	if at < 0 {
		return -1
	}
	return at + 1
}

// cutElements cuts the sequence at the start of a text into its elements, and returns how many
// bytes they take. Lines that are indented deeper belong to an element, and so do comments.
func cutElements(p part) (elements []part, size int) {
	indent, start, line := -1, 0, p.line
	for text := range bytes.Lines(p.text) {
		content := bytes.TrimLeft(text, " ")
		column := len(text) - len(content)
		starts := len(content) > 0 && content[0] == '-' && (len(content) == 1 || bytes.IndexByte([]byte(" \t\r\n"), content[1]) >= 0)
		switch {
		case starts && (indent < 0 || column == indent):
			if indent < 0 { // comments in front of the first element are a part of it
				indent, elements = column, append(elements, part{line: p.line})
				break
			}
			elements[len(elements)-1].text = p.text[start:size]
			start, elements = size, append(elements, part{line: line})
		case len(content) == 0 || bytes.IndexByte([]byte("#\r\n"), content[0]) >= 0:
		case indent < 0 || column <= indent:
			return closed(elements, p.text[start:size]), size
		}
		size += len(text)
		line++
	}
	return closed(elements, p.text[start:size]), size
}

// closed gives the last element its text.
func closed(elements []part, text []byte) []part {
	if len(elements) > 0 {
		elements[len(elements)-1].text = text
	}
	return elements
}

// decode decodes the elements one by one: the nodes of a text take many times the memory of its
// values. It reports false for a document that has to be decoded as a whole: for example, an
// element has an alias for something in another one, or is only a part of a text in quotes. A
// text that is cut inside of quotes or brackets is never valid before the cut.
func (l list) decode(aliases *int) (value, bool) {
	whole, ok := single(l.rest, 0, aliases)
	object, isMap := whole.content.(map[string]any)
	if !ok || !isMap || object["items"] != placeholder {
		return value{}, false
	}
	items := make([]any, len(l.elements))
	whole.items = make([]int, len(l.elements))
	for i, text := range l.elements {
		element, ok := single(text, 1, aliases)
		sequence, isList := element.content.([]any)
		if !ok || !isList || len(sequence) != 1 {
			return value{}, false
		}
		items[i], whole.items[i] = sequence[0], element.items[0]
	}
	object["items"] = items
	return whole, true
}

// single decodes the only value of a text.
func single(p part, depth int, aliases *int) (value, bool) {
	values, err := decodeNodes(p, depth, aliases)
	if err != nil || len(values) != 1 {
		return value{}, false
	}
	return values[0], true
}
