package input

import (
	"bytes"
	"regexp"
	"slices"
)

// placeholder stands for the elements in the rest of a list.
const placeholder = "elements-that-are-read-one-by-one"

// blockStart matches the start of a document whose first line is a key: a mapping in block style.
var blockStart = regexp.MustCompile(`\A(?:[ \t]*(?:#.*)?\r?\n)*[A-Za-z]+:(?:[ \t\r\n]|$)`)

// itemsLine matches the line in front of the elements.
var itemsLine = regexp.MustCompile(`(?m)^items:\n`)

// decodeList decodes a document in block style, as kubectl prints it, by the elements of its list: the nodes of a text take many
// times the memory of its values. It cuts it by indentation alone, and reports false for a document that has to be decoded as a
// whole: for example, an element has an alias for something in another one, or is only a part of a text in quotes. A text that is
// cut inside of quotes or brackets is never valid before the cut.
func decodeList(p part, aliases *int) (value, bool) {
	at := itemsLine.FindIndex(p.text)
	if at == nil || !blockStart.Match(p.text) || bytes.Contains(p.text, []byte(placeholder)) || otherBreaks(p.text) {
		return value{}, false
	}
	elements, first, end := cutElements(p.from(at[1]))
	text := slices.Concat(p.text[:at[0]], []byte("items: "+placeholder+"\n"), p.text[at[1]:at[1]+first], p.text[at[1]+end:])
	whole, ok := single(part{text: text, line: p.line}, 0, aliases)
	object, isMap := whole.content.(map[string]any)
	if !ok || !isMap || object["items"] != placeholder || len(elements) == 0 {
		return value{}, false
	}
	items := make([]any, len(elements))
	whole.items = make([]int, len(elements))
	for i, e := range elements {
		e.text = bytes.Clone(e.text)
		e.text[bytes.IndexByte(e.text, '-')] = ' '
		element, ok := single(e, 2, aliases)
		if _, isMap := element.content.(map[string]any); !ok || !isMap {
			return value{}, false
		}
		items[i], whole.items[i] = element.content, element.line
	}
	object["items"] = items
	return whole, true
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

// cutElements cuts the sequence in a text into its elements, and returns where the first of them begins, and where the last one
// ends. Lines that are indented deeper belong to an element, and so do comments.
func cutElements(p part) (elements []part, first, end int) {
	indent, start := -1, 0
	cut := func() {
		if len(elements) > 0 {
			elements[len(elements)-1].text = p.text[start:end]
		}
	}
	for text := range bytes.Lines(p.text) {
		content := bytes.TrimLeft(text, " ")
		column := len(text) - len(content)
		starts := len(content) > 1 && content[0] == '-' && bytes.IndexByte([]byte(" \t\r\n"), content[1]) >= 0
		switch {
		case starts && (indent < 0 || column == indent):
			if cut(); indent < 0 {
				indent, first = column, end
			}
			start, elements = end, append(elements, part{line: p.line})
		case len(content) == 0 || bytes.IndexByte([]byte("#\r\n"), content[0]) >= 0:
		case indent < 0 || column <= indent:
			cut()
			return elements, first, end
		}
		end += len(text)
		p.line++
	}
	cut()
	return elements, first, end
}

// single decodes the only value of a text.
func single(p part, depth int, aliases *int) (value, bool) {
	values, err := decodeNodes(p, depth, aliases)
	if err != nil || len(values) != 1 {
		return value{}, false
	}
	return values[0], true
}
