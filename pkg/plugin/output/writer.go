package output

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// longestPlain is the maximum length of strings that plain looks at, in bytes.
const longestPlain = 64

// yamlWriter writes an object as YAML, twice for each diff. It knows only the shapes of objects, and leaves
// strings that may need quotes to the YAML library, whose events for whole objects would take most of the
// time and memory of a preview. In a string with Windows line ends each line ends in the escape "\r", where
// YAML
// would have to write the string on one line. It fails for a value that JSON does not have.
type yamlWriter struct {
	bytes.Buffer
	lines  []*holder
	inline bool // the next line continues after the dash of an element
}

// line begins a line with its holder.
func (w *yamlWriter) line(at *holder, indent int) {
	if w.inline {
		w.inline = false
		return
	}
	w.lines = append(w.lines, at)
	for range indent {
		w.WriteByte(' ')
	}
}

// value writes the value after a key or a dash, with its line break. Self holds its lines after the first.
func (w *yamlWriter) value(v any, indent int, self *holder) error {
	fields, _ := v.(map[string]any)
	list, _ := v.([]any)
	if len(fields)+len(list) > 0 {
		if w.inline = self.item != nil; w.inline {
			w.WriteByte(' ')
		} else {
			w.WriteByte('\n')
		}
		return cmp.Or(w.fields(fields, indent, self), w.list(list, indent, self))
	}
	w.WriteByte(' ')
	if s, ok := v.(string); ok && w.block(s, indent, self) {
		return nil
	}
	text := "null"
	var err error
	switch v := v.(type) {
	case nil:
	case bool:
		text = strconv.FormatBool(v)
	case int64:
		text = strconv.FormatInt(v, 10)
	case string:
		text, err = w.text(v)
	default:
		var other []byte
		other, err = MarshalYAML(v)
		text = strings.TrimSuffix(string(other), "\n")
	}
	w.continued(text, indent, self)
	return err
}

// continued writes a string of the library, which indents it for the outermost level.
func (w *yamlWriter) continued(text string, indent int, self *holder) {
	first, rest, more := strings.Cut(text, "\n")
	w.WriteString(first)
	w.WriteByte('\n')
	if !more {
		return
	}
	for line := range strings.SplitSeq(rest, "\n") {
		if line == "" {
			w.line(self, 0)
		} else {
			w.line(self, max(indent-2, 0))
		}
		w.WriteString(line)
		w.WriteByte('\n')
	}
}

func (w *yamlWriter) fields(m map[string]any, indent int, at *holder) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v := m[key]
		name, err := w.key(key)
		if err != nil {
			return err
		}
		w.line(at, indent)
		w.WriteString(name)
		w.WriteByte(':')
		below := indent + 2
		if _, isList := v.([]any); isList {
			below = indent
		}
		if err := w.value(v, below, &holder{parent: at, key: key}); err != nil {
			return err
		}
	}
	return nil
}

func (w *yamlWriter) list(items []any, indent int, at *holder) error {
	for i, item := range items {
		w.line(at, indent)
		w.WriteByte('-')
		if err := w.value(item, indent+2, &holder{parent: at, index: i, item: item}); err != nil {
			return err
		}
	}
	return nil
}

func (w *yamlWriter) key(key string) (string, error) {
	text, err := w.text(key)
	if err == nil && (strings.Contains(text, "\n") || len(text) > longestPlain*2) {
		return strconv.Quote(key), nil // a key is one line
	}
	return text, err
}

// text returns a string as YAML, quoted where necessary.
func (w *yamlWriter) text(s string) (string, error) {
	if plain(s) {
		return s, nil
	}
	if ambiguous(s) || s == mergeKey {
		return strconv.Quote(s), nil
	}
	text, err := yaml.Marshal(strings.ToValidUTF8(s, "\ufffd"))
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// plain reports whether a string needs no quotes for sure: words, names and paths that begin with a letter
// and are no word of YAML 1.1, and strings that begin with a digit and have a letter that no number or time
// has.
func plain(s string) bool {
	if s == "" || len(s) > longestPlain {
		return false
	}
	word := isLetter(s[0])
	if !word && !isDigit(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case isLetter(c):
			word = word || !strings.ContainsRune("beotxzBEOTXZ", rune(c))
		case isDigit(c), c == '-', c == '.', c == '/', c == '_', c == '=', c == '@', c == ':' && i < len(s)-1:
		default:
			return false
		}
	}
	if len(s) <= len("false") {
		switch strings.ToLower(s) {
		case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
			return false
		}
	}
	hexadecimal := s[0] == '0' && len(s) > 1 && s[1]|0x20 == 'x'
	return word && !hexadecimal
}

func isLetter(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// block writes a string of several lines line by line, and reports whether it could. The library would
// escape a string with a tab or trailing space on one line: neither a file in a ConfigMap nor a change in it
// could be read.
func (w *yamlWriter) block(s string, indent int, self *holder) bool {
	if !asLines(s) {
		return false
	}
	w.WriteByte('|')
	if s[0] == ' ' || s[0] == '\t' || s[0] == '\n' {
		w.WriteByte('2') // otherwise the first line would determine the indentation
	}
	switch body := strings.TrimRight(s, "\n"); len(s) - len(body) {
	case 0:
		w.WriteByte('-')
	case 1:
	default:
		w.WriteByte('+')
	}
	// At the outermost level, the string of a key is indented as well.
	margin := max(indent, 2)
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		w.WriteByte('\n')
		if line == "" {
			w.line(self, 0)
		} else {
			w.line(self, margin)
			text, returned := strings.CutSuffix(line, "\r")
			w.WriteString(text)
			if returned {
				w.WriteString(carriageReturn)
			}
		}
	}
	w.WriteByte('\n')
	return true
}

// carriageReturn stands for a carriage return before a line break, as Windows ends lines, so that it is
// visible.
const carriageReturn = `\r`

// ambiguous reports whether lines of a string end in carriageReturn.
func ambiguous(s string) bool { return strings.Contains(s, carriageReturn+"\n") }

// asLines reports whether a string has several lines that a YAML block can hold.
func asLines(s string) bool {
	if strings.IndexByte(s, '\n') < 0 || ambiguous(s) {
		return false
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.Trim(s, "\n") == "" || !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		special := unicode.IsControl(r) && r != '\n' && r != '\t'
		return special || unreadable(r) || r == '\u2028' || r == '\u2029'
	})
}

// Document is an object as YAML, with the holder of each line.
type Document struct {
	Text string

	lines []*holder // of each line; nil for the outermost level
}

// holder is a field or a list element that holds lines.
type holder struct {
	parent *holder // nil for the outermost level
	key    string  // of a field; empty for an element
	index  int     // of an element
	item   any     // the element
}

// Place returns the path of the holder of a line, counted from 0, as "spec.containers[web].env", with
// elements by their name. It is empty for the outermost level. The lines of a string belong to its field.
func (d *Document) Place(line int) string {
	if line < 0 || line >= len(d.lines) {
		return ""
	}
	return strings.TrimPrefix(d.lines[line].path(), ".")
}

func (h *holder) path() string {
	if h == nil {
		return ""
	}
	return h.parent.path() + h.String()
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	plainItem = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)
)

// String returns the last part of the holder's path.
func (h *holder) String() string {
	if h.item != nil {
		object, _ := h.item.(map[string]any)
		if name, ok := object["name"].(string); ok && plainItem.MatchString(name) {
			return "[" + name + "]"
		}
		return "[" + strconv.Itoa(h.index) + "]"
	}
	if plainName.MatchString(h.key) {
		return "." + h.key
	}
	return "[" + strconv.Quote(h.key) + "]"
}

// Manifests returns objects as a stream of YAML documents.
func Manifests(objects []*unstructured.Unstructured) (string, error) {
	var b strings.Builder
	for i, u := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := MarshalYAML(u.Object)
		if err != nil {
			return "", err
		}
		b.Write(text)
	}
	return b.String(), nil
}

// MarshalYAML returns a value as YAML of the library, with escapes for characters that act on a terminal or
// mislead a reader.
func MarshalYAML(v any) ([]byte, error) {
	// The library has no escapes for these characters. So each passes it as its code between marks, which are
	// control characters, for which it has.
	//
	// The library's own conversion from JSON reads that as YAML, and refuses keys of more than 1,024 bytes and
	// some control characters, so that one object could end a run.
	var m marker
	ready := m.value(v)
	if m.err != nil {
		return nil, fmt.Errorf("writing YAML: %w", m.err)
	}
	out, err := yaml.Marshal(ready)
	if err != nil || !m.marked {
		return out, err
	}
	return markedCode.ReplaceAllFunc(out, func(m []byte) []byte {
		code, _ := strconv.ParseUint(string(m[len(yamlMark):len(m)-len(yamlMark)]), 16, 32)
		switch {
		case code < 0x7f && code >= ' ': // of a merge key
			return []byte{byte(code)}
		case code <= 0xff:
			return fmt.Appendf(nil, `\x%02x`, code)
		case code <= 0xffff:
			return fmt.Appendf(nil, `\u%04x`, code)
		}
		return fmt.Appendf(nil, `\U%08x`, code)
	}), nil
}

// mark stands around the code of a character, and yamlMark is what YAML writes for it.
const (
	mark     = '\x01'
	yamlMark = `\x01`
)

var markedCode = regexp.MustCompile(`\\x01[0-9a-f]+\\x01`)

// mergeKey is a key that readers of YAML merge into its map, unless it is quoted. The library does not quote
// it.
const mergeKey = "<<"

// marker prepares values for the library.
type marker struct {
	marked bool
	err    error // of a value that JSON does not have
}

// value returns a copy of a value as JSON has it, with misleading characters as codes between marks. Values
// of types that objects do not have pass through JSON; if all did, a report would take 1.4 times as long.
func (m *marker) value(v any) any {
	switch v := v.(type) {
	case nil, bool, int64:
		return v
	case string:
		return m.text(v)
	case json.Number:
		return number(v)
	case []any:
		if v == nil {
			return nil
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.value(v[i])
		}
		return out
	case map[string]any:
		if v == nil {
			return nil
		}
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[m.text(key)] = m.value(value)
		}
		return out
	}
	text, err := json.Marshal(v)
	var decoded any
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(&decoded)
	}
	m.err = cmp.Or(m.err, err)
	return m.value(decoded)
}

// number returns a JSON number; infinity if it is too large.
func number(n json.Number) any {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return u
	}
	f, _ := n.Float64()
	return f
}

func (m *marker) text(s string) string {
	if s != mergeKey && utf8.ValidString(s) && strings.IndexFunc(s, marks) < 0 {
		return s
	}
	m.marked = true
	var b strings.Builder
	for _, r := range s {
		if marks(r) || s == mergeKey {
			fmt.Fprintf(&b, "%c%x%c", mark, r, mark)
		} else {
			b.WriteRune(r) // U+FFFD where it is none
		}
	}
	return b.String()
}

// marks reports whether YAML would show a character that a reader should not see. The library escapes
// control characters itself.
func marks(r rune) bool { return r == mark || r >= 0xa0 && r != utf8.RuneError && redact.Harmful(r) }

// unreadable reports whether YAML does not allow a character in a string, or reads it as a line break.
func unreadable(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff
}
