package objectdiff

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v2"
)

// YAMLWriter writes objects as YAML, two of them for each diff. It knows the shapes of
// objects only, and leaves to the YAML library each text that may need quotes: the
// library's own events for whole objects would be most of the time and memory of a
// preview. The zero value is ready for use, by one goroutine at a time.
type YAMLWriter struct {
	b   bytes.Buffer
	out *Document
	// scalars remembers what the library made of short texts, such as "500m".
	scalars map[string]string
}

// The bounds of what is remembered.
const (
	maxScalars      = 4096
	maxScalarLength = 64
)

// Object returns an object's YAML, but for one thing: of a text with the line ends of
// Windows each line ends in "\r", as an escape, where YAML could show the text on one
// line only. It fails for a value that no JSON document holds.
func (w *YAMLWriter) Object(fields map[string]any) (*Document, error) {
	w.b.Reset()
	w.out = &Document{}
	err := w.fields(fields, 0, nil, false)
	w.out.Text = w.b.String()
	return w.out, err
}

// line begins a line of what is held there.
func (w *YAMLWriter) line(at *holder, indent int) {
	w.out.lines = append(w.out.lines, at)
	for range indent {
		w.b.WriteByte(' ')
	}
}

// value writes what stands behind a key or a dash, its line break included. The holder
// is that of its lines behind the first.
func (w *YAMLWriter) value(v any, indent int, self *holder) error {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.b.WriteString(" {}\n")
			return nil
		}
		w.b.WriteByte('\n')
		return w.fields(v, indent, self, false)
	case []any:
		if len(v) == 0 {
			w.b.WriteString(" []\n")
			return nil
		}
		w.b.WriteByte('\n')
		return w.list(v, indent, self, false)
	}
	w.b.WriteByte(' ')
	if s, ok := v.(string); ok && w.block(s, indent, self) {
		return nil
	}
	text, err := w.scalar(v)
	if err != nil {
		return err
	}
	w.continued(text, indent, self)
	return nil
}

// continued writes a text of the library. Its lines behind the first, written for the
// outermost level, are two further in than what holds them.
func (w *YAMLWriter) continued(text string, indent int, self *holder) {
	first, rest, more := strings.Cut(text, "\n")
	w.b.WriteString(first)
	w.b.WriteByte('\n')
	if !more {
		return
	}
	for line := range strings.SplitSeq(rest, "\n") {
		if line == "" {
			w.line(self, 0)
		} else {
			w.line(self, max(indent-2, 0))
		}
		w.b.WriteString(line)
		w.b.WriteByte('\n')
	}
}

// fields writes a map; inline, its first line goes on where the text is.
func (w *YAMLWriter) fields(m map[string]any, indent int, at *holder, inline bool) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v := m[key]
		name, err := w.key(key)
		if err != nil {
			return err
		}
		if !inline {
			w.line(at, indent)
		}
		inline = false
		w.b.WriteString(name)
		w.b.WriteByte(':')
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

// list writes a list; inline, its first line goes on where the text is.
func (w *YAMLWriter) list(items []any, indent int, at *holder, inline bool) error {
	for i, item := range items {
		if !inline {
			w.line(at, indent)
		}
		inline = false
		w.b.WriteByte('-')
		self := &holder{parent: at, index: i, item: item}
		var err error
		below, isMap := item.(map[string]any)
		list, isList := item.([]any)
		switch {
		case isMap && len(below) > 0:
			w.b.WriteByte(' ')
			err = w.fields(below, indent+2, self, true)
		case isList && len(list) > 0:
			w.b.WriteByte(' ')
			err = w.list(list, indent+2, self, true)
		default:
			err = w.value(item, indent+2, self)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	text, err := MarshalYAML(v)
	return strings.TrimSuffix(string(text), "\n"), err
}

// text is a text as YAML, with quotes where it needs them.
func (w *YAMLWriter) text(s string) (string, error) {
	if plain(s) {
		return s, nil
	}
	if known, ok := w.scalars[s]; ok {
		return known, nil
	}
	if ambiguous(s) || s == mergeKey {
		return strconv.Quote(s), nil
	}
	text, err := yaml.Marshal(strings.ToValidUTF8(s, "\ufffd"))
	if err != nil {
		return "", err
	}
	written := strings.TrimSuffix(string(text), "\n")
	if len(s) <= maxScalarLength {
		if w.scalars == nil || len(w.scalars) == maxScalars {
			w.scalars = map[string]string{}
		}
		w.scalars[s] = written
	}
	return written, nil
}
