package objectdiff

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// YAMLWriter writes objects as YAML, two of them for each diff. It knows the shapes of
// objects only, and leaves to the YAML library each text that may need quotes: the
// library's own events for whole objects would be most of the time and memory of a
// preview. The zero value is ready for use, by one goroutine at a time.
type YAMLWriter struct {
	b strings.Builder
	// scalars remembers what the library made of short texts, such as "500m".
	scalars map[string]string
}

// The bounds of what is remembered.
const (
	maxScalars      = 4096
	maxScalarLength = 64
)

// Object is an object's YAML, but for one thing: of a text with the line ends of
// Windows each line ends in "\r", as an escape, where YAML could show the text on one
// line only. Its error is a value that no JSON document holds.
func (w *YAMLWriter) Object(fields map[string]any) (string, error) {
	w.b.Reset()
	if err := w.value(fields, 0); err != nil {
		return "", err
	}
	return strings.TrimPrefix(w.b.String(), "\n"), nil
}

// value writes what stands behind a key or a dash, its line break included.
func (w *YAMLWriter) value(v any, indent int) error {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.b.WriteString(" {}\n")
			return nil
		}
		w.b.WriteByte('\n')
		return w.fields(v, indent, indent)
	case []any:
		if len(v) == 0 {
			w.b.WriteString(" []\n")
			return nil
		}
		w.b.WriteByte('\n')
		return w.list(v, indent, indent)
	}
	w.b.WriteByte(' ')
	if s, ok := v.(string); ok && w.block(s, indent) {
		return nil
	}
	text, err := w.scalar(v)
	if err != nil {
		return err
	}
	w.b.WriteString(indented(text, indent))
	w.b.WriteByte('\n')
	return nil
}

// fields writes a map; its first line stands where the text already is, if first is 0.
func (w *YAMLWriter) fields(m map[string]any, indent, first int) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		name, err := w.key(key)
		if err != nil {
			return err
		}
		w.space(first)
		first = indent
		w.b.WriteString(name)
		w.b.WriteByte(':')
		below := indent + 2
		if _, isList := m[key].([]any); isList {
			below = indent
		}
		if err := w.value(m[key], below); err != nil {
			return err
		}
	}
	return nil
}

// list writes a list; its first line stands where the text already is, if first is 0.
func (w *YAMLWriter) list(items []any, indent, first int) error {
	for _, item := range items {
		w.space(first)
		first = indent
		w.b.WriteByte('-')
		var err error
		switch v := item.(type) {
		case map[string]any:
			if len(v) == 0 {
				err = w.value(v, indent)
				break
			}
			w.b.WriteByte(' ')
			err = w.fields(v, indent+2, 0)
		case []any:
			if len(v) == 0 {
				err = w.value(v, indent)
				break
			}
			w.b.WriteByte(' ')
			err = w.list(v, indent+2, 0)
		default:
			err = w.value(item, indent+2)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *YAMLWriter) space(n int) {
	for range n {
		w.b.WriteByte(' ')
	}
}

func (w *YAMLWriter) key(key string) (string, error) {
	text, err := w.text(key)
	if err == nil && (strings.Contains(text, "\n") || len(text) > maxScalarLength*2) {
		return strconv.Quote(key), nil // a key is one line
	}
	return text, err
}

func (w *YAMLWriter) scalar(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "null", nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case string:
		return w.text(v)
	}
	return marshalScalar(v)
}

// text is a text as YAML, with quotes where it needs them.
func (w *YAMLWriter) text(s string) (string, error) {
	if plain(s) {
		return s, nil
	}
	if known, ok := w.scalars[s]; ok {
		return known, nil
	}
	if ambiguous(s) {
		return strconv.Quote(s), nil
	}
	written, err := marshalScalar(s)
	if err == nil && len(s) <= maxScalarLength && len(w.scalars) < maxScalars {
		if w.scalars == nil {
			w.scalars = map[string]string{}
		}
		w.scalars[s] = written
	}
	return written, err
}

func marshalScalar(v any) (string, error) {
	out, err := MarshalYAML(v)
	return strings.TrimSuffix(string(out), "\n"), err
}

// indented moves the lines behind the first to the right. Written for the
// outermost level, they are two further in than what holds them.
func indented(text string, indent int) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i := range lines[1:] {
		if lines[i+1] != "" {
			lines[i+1] = strings.Repeat(" ", max(indent-2, 0)) + lines[i+1]
		}
	}
	return strings.Join(lines, "\n")
}

// plain tells whether a text surely means itself without quotes: words, names
// and paths that begin with a letter and are no word of YAML 1.1.
func plain(s string) bool {
	if s == "" || len(s) > maxScalarLength {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := (c|0x20) >= 'a' && (c|0x20) <= 'z'
		inner := c >= '0' && c <= '9' || c == '-' || c == '.' || c == '/' || c == '_'
		if !letter && (i == 0 || !inner && (c != ':' || i == len(s)-1)) {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}
