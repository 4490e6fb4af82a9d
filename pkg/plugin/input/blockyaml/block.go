// Package blockyaml decodes the YAML that programs write in a tenth of a library's time.
package blockyaml

import (
	"strconv"
	"strings"
)

// Options of Decode.
type Options struct {
	// Depth is the maximum nesting of values.
	Depth int
	// Scalar returns the value of a plain scalar that is not obviously a string or an integer, or false.
	Scalar func(plain string) (any, bool)
}

// Document is a decoded document. Lines count from 1.
type Document struct {
	Content any // map[string]any or []any, of these, strings, int64 and results of Options.Scalar
	Line    int // of the content
}

// block decodes YAML as programs write it: mappings and sequences in block style, or empty; plain, quoted
// and literal scalars on lines of their own; ASCII. Each method reports false for anything else, and for
// errors, which are left to a library.
type block struct {
	text   string // from the start of the next line
	number int    // of the next line, from 0
	// The current line; empty if it was consumed. A sequence consumes its dash, so that a collection may begin
	// after it.
	content string
	indent  int // of the content
	Options
}

// Decode decodes a document. It reports false if it needs another decoder.
func Decode(text []byte, o Options) (Document, bool) {
	for _, c := range text {
		if (c < ' ' && c != '\n') || c > '~' {
			return Document{}, false
		}
	}
	b := &block{text: string(text), Options: o}
	if !b.look() {
		return Document{}, false
	}
	d := Document{Line: b.number}
	var ok bool
	d.Content, ok = b.collection(0, true)
	return d, ok && !b.look()
}

// look moves to the next line with content, unless there is a current one, and reports whether it found one.
func (b *block) look() bool {
	for b.content == "" && b.text != "" {
		line, rest, _ := strings.Cut(b.text, "\n")
		b.text = rest
		b.number++
		content := strings.TrimLeft(line, " ")
		b.indent = len(line) - len(content)
		if content != "" && content[0] != '#' {
			b.content = strings.TrimRight(content, " ")
		}
	}
	return b.content != ""
}

// below reports whether the next line has a deeper indentation.
func (b *block) below(indent int) bool { return b.look() && b.indent > indent }

func isItem(content string) bool { return content == "-" || strings.HasPrefix(content, "- ") }

// collection decodes the mapping or sequence that begins with the content.
func (b *block) collection(depth int, root bool) (any, bool) {
	if depth >= b.Depth {
		return nil, false
	}
	if isItem(b.content) {
		return b.sequence(depth)
	}
	return b.mapping(depth, root)
}

func (b *block) sequence(depth int) (any, bool) {
	indent := b.indent
	out := []any{}
	for b.look() && b.indent == indent && isItem(b.content) {
		rest := strings.TrimLeft(b.content[1:], " ")
		b.indent += len(b.content) - len(rest)
		b.content = rest
		var v any
		var ok bool
		if isItem(rest) || isKey(rest) {
			v, ok = b.collection(depth+1, false)
		} else {
			v, ok = b.value(indent, depth+1, false)
		}
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, !b.below(indent)
}

func (b *block) mapping(depth int, root bool) (any, bool) {
	indent := b.indent
	out := map[string]any{}
	for b.look() && b.indent == indent {
		key, rest, ok := cutKey(b.content)
		if !ok {
			return nil, false
		}
		if _, twice := out[key]; twice {
			return nil, false
		}
		b.content = rest
		v, ok := b.value(indent, depth+1, true)
		if !ok || root && key == "items" && !isScalar(v) { // its elements need lines
			return nil, false
		}
		out[key] = v
	}
	return out, !b.below(indent)
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// cutKey cuts the content of a line after its key. It reports false without a key that is obviously a
// string.
func cutKey(content string) (key, rest string, ok bool) {
	if content == "" {
		return "", "", false
	}
	if quote := content[0]; quote == '"' || quote == '\'' {
		if key, rest, ok = cutQuoted(content); !ok || !strings.HasPrefix(rest, ":") {
			return "", "", false
		}
		rest = rest[1:]
	} else {
		colon := strings.Index(content+" ", ": ")
		if colon < 0 || !startsText(content[0]) {
			return "", "", false
		}
		if key, rest = content[:colon], content[colon+1:]; strings.Contains(key, " ") || !isText(key) {
			return "", "", false
		}
	}
	trimmed := strings.TrimLeft(rest, " ")
	// YAML limits keys to 1,024 bytes; a space must follow the colon
	if len(content)-len(rest) > 1000 || rest != "" && len(trimmed) == len(rest) {
		return "", "", false
	}
	if strings.HasPrefix(trimmed, "#") {
		trimmed = ""
	}
	return key, trimmed, true
}

func isKey(content string) bool {
	_, _, ok := cutKey(content)
	return ok
}

// value decodes the content after a key or a dash in a collection with an indentation, or what is below it.
func (b *block) value(indent, depth int, key bool) (any, bool) {
	content := b.content
	b.content = ""
	switch {
	case content == "" || content[0] == '#':
		switch {
		case b.below(indent), key && b.look() && b.indent == indent && isItem(b.content):
			return b.collection(depth, false)
		}
		return nil, true
	case content == "|" || content == "|-":
		return b.literal(indent, content == "|")
	case content == "{}":
		return map[string]any{}, !b.below(indent)
	case content == "[]":
		return []any{}, !b.below(indent)
	}
	v, ok := b.scalar(content)
	return v, ok && !b.below(indent) // a string may continue there
}

// isComment reports whether only a comment follows a value.
func isComment(rest string) bool {
	return rest == "" || rest[0] == ' ' && strings.HasPrefix(strings.TrimLeft(rest, " "), "#")
}

// scalar decodes a scalar on one line.
func (b *block) scalar(content string) (any, bool) {
	switch c := content[0]; {
	case c == '"' || c == '\'':
		text, rest, ok := cutQuoted(content)
		return text, ok && isComment(rest)
	case content == "~":
		return nil, true
	case !startsText(c) && c != '-' && c != '+' && c != '.', strings.HasPrefix(content, "---"),
		strings.HasPrefix(content, "..."), isItem(content):
		return nil, false
	}
	if end := strings.Index(content, " #"); end >= 0 {
		content = strings.TrimRight(content[:end], " ")
	}
	if strings.Contains(content, ": ") || strings.HasSuffix(content, ":") {
		return nil, false
	}
	if isText(content) {
		return content, true
	}
	if n, err := strconv.ParseInt(content, 10, 64); err == nil && strconv.FormatInt(n, 10) == content {
		return n, true
	}
	return b.Scalar(content)
}

// startsText reports whether a plain scalar that starts with a byte may be a string.
func startsText(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '/' || c == '_' ||
		c == '$' || c == '('
}

// isText reports whether a plain scalar is obviously a string. One that starts with a digit and ends with a
// letter after F is neither a number nor a time.
func isText(plain string) bool {
	first, last := plain[0], plain[len(plain)-1]|0x20
	switch {
	case !startsText(first):
		return false
	case first >= '0' && first <= '9':
		return last > 'f' && last < 'z'
	case len(plain) > len("false"):
		return true
	}
	switch strings.ToLower(plain) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}

// cutQuoted cuts a string after the quoted scalar at its start.
func cutQuoted(content string) (text, rest string, ok bool) {
	if content[0] == '"' {
		text, rest, ok = strings.Cut(content[1:], `"`)
		return text, rest, ok && !strings.Contains(text, `\`)
	}
	for rest = content[1:]; ; rest = rest[1:] { // two quotes stand for one
		if _, rest, ok = strings.Cut(rest, "'"); !ok {
			return "", "", false
		}
		if !strings.HasPrefix(rest, "'") {
			break
		}
	}
	return strings.ReplaceAll(content[1:len(content)-len(rest)-1], "''", "'"), rest, true
}

// literal decodes the lines of a literal block below a collection. Trailing empty lines are dropped, and the
// last line break unless it is wanted.
func (b *block) literal(parent int, keepBreak bool) (any, bool) {
	indent := -1
	var out strings.Builder
	empty := 0
	for b.text != "" {
		line, rest, whole := strings.Cut(b.text, "\n")
		content := strings.TrimLeft(line, " ")
		switch depth := len(line) - len(content); {
		case indent < 0 && (content == "" || depth <= parent):
			return nil, false
		case indent < 0:
			indent = depth
		case content != "" && depth < indent:
			return ended(&out, keepBreak), true
		}
		b.text = rest
		b.number++
		if len(line) <= indent {
			empty++
			continue
		}
		if !whole { // the last line of the file
			return nil, false
		}
		if out.Len() > 0 {
			out.WriteString(strings.Repeat("\n", 1+empty))
		}
		empty = 0
		out.WriteString(line[indent:])
	}
	return ended(&out, keepBreak), indent >= 0
}

func ended(out *strings.Builder, keepBreak bool) string {
	if keepBreak {
		out.WriteByte('\n')
	}
	return out.String()
}
