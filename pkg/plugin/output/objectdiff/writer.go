package objectdiff

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// YAMLWriter writes objects as YAML, two of them for each diff. It knows the shapes of
// objects only, and leaves to the YAML library each text that may need quotes: the
// library's own events for whole objects would be most of the time and memory of a
// preview. The zero value is ready for use, by one goroutine at a time.
type YAMLWriter struct {
	b       bytes.Buffer
	out     *Document
	keys    []string // of the maps that are being written, one behind the other
	library bool     // the text is that of the library
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
	out := &Document{}
	return out, w.object(fields, out)
}

// object writes an object to a document, in place of what that held.
func (w *YAMLWriter) object(fields map[string]any, out *Document) error {
	w.b.Reset()
	w.library = false
	out.holders, out.lines = out.holders[:0], out.lines[:0]
	w.out = out
	err := w.fields(fields, 0, root, false)
	out.Text = w.b.String()
	return err
}

// Marshal returns what MarshalYAML returns, until it is called again. Only what is not of the shape of objects, or
// may need quotes, goes through the library.
func (w *YAMLWriter) Marshal(v any) ([]byte, error) {
	w.b.Reset()
	w.library = true
	var err error
	switch v := v.(type) {
	case map[string]any:
		err = w.fields(v, 0, root, false)
	case []any:
		err = w.list(v, 0, root, false)
	default:
		err = w.marshal(v, 0, false)
	}
	return w.b.Bytes(), err
}

// deepIndent is from where on the library writes all of a value: to ask it for a part takes a value of as many levels.
const deepIndent = 64

// marshal writes what the library writes of a map or a list at an indent: its lines are as long there as they may be.
func (w *YAMLWriter) marshal(v any, indent int, inline bool) error {
	above := indent / 2
	if _, isList := v.([]any); isList && above > 0 {
		above++ // a list stands below the key, and not further in
	}
	for range above {
		v = map[string]any{"k": v}
	}
	text, err := marshalYAML(v)
	for range above {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	if inline {
		text = text[min(indent, len(text)):]
	}
	w.b.Write(text)
	return err
}

// hold adds a holder of lines.
func (w *YAMLWriter) hold(h holder) int32 {
	if w.library {
		return root
	}
	w.out.holders = append(w.out.holders, h)
	return int32(len(w.out.holders) - 1) // an object is smaller
}

// line begins a line of what is held there.
func (w *YAMLWriter) line(at int32, indent int) {
	if !w.library {
		w.out.lines = append(w.out.lines, at)
	}
	for ; indent > len(spaces); indent -= len(spaces) {
		w.b.WriteString(spaces)
	}
	w.b.WriteString(spaces[:indent])
}

const spaces = "                                "

// value writes what stands behind a key or a dash, its line break included. The holder
// is that of its lines behind the first.
func (w *YAMLWriter) value(v any, indent int, self holder) error {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.b.WriteString(" {}\n")
			return nil
		}
		w.b.WriteByte('\n')
		return w.fields(v, indent, w.hold(self), false)
	case []any:
		if len(v) == 0 {
			w.b.WriteString(" []\n")
			return nil
		}
		w.b.WriteByte('\n')
		return w.list(v, indent, w.hold(self), false)
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
func (w *YAMLWriter) continued(text string, indent int, self holder) {
	first, rest, more := strings.Cut(text, "\n")
	w.b.WriteString(first)
	w.b.WriteByte('\n')
	if !more {
		return
	}
	at := w.hold(self)
	for line := range strings.SplitSeq(rest, "\n") {
		if line == "" {
			w.line(at, 0)
		} else {
			w.line(at, max(indent-2, 0))
		}
		w.b.WriteString(line)
		w.b.WriteByte('\n')
	}
}

// fields writes a map; inline, its first line goes on where the text is.
func (w *YAMLWriter) fields(m map[string]any, indent int, at int32, inline bool) error {
	first := len(w.keys)
	for key := range m {
		w.keys = append(w.keys, key)
	}
	keys := w.keys[first:]
	defer func() { w.keys = w.keys[:first] }()
	if !w.library {
		slices.Sort(keys)
	} else if slices.SortFunc(keys, compareKeys); len(keys) == 0 || indent > deepIndent || !every(keys, plain) {
		return w.marshal(m, indent, inline)
	}
	for _, key := range keys {
		v := m[key]
		if w.library && !shaped(v) {
			if err := w.marshal(map[string]any{key: v}, indent, inline); err != nil {
				return err
			}
			inline = false
			continue
		}
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
		if err := w.value(v, below, holder{parent: at, key: key}); err != nil {
			return err
		}
	}
	return nil
}

// list writes a list; inline, its first line goes on where the text is.
func (w *YAMLWriter) list(items []any, indent int, at int32, inline bool) error {
	if w.library && (len(items) == 0 || indent > deepIndent || !every(items, shaped)) {
		return w.marshal(items, indent, inline)
	}
	for i, item := range items {
		if !inline {
			w.line(at, indent)
		}
		inline = false
		w.b.WriteByte('-')
		self := holder{parent: at, index: i, item: item}
		var err error
		switch v := item.(type) {
		case map[string]any:
			if len(v) == 0 {
				err = w.value(v, indent, self)
				break
			}
			w.b.WriteByte(' ')
			err = w.fields(v, indent+2, w.hold(self), true)
		case []any:
			if len(v) == 0 {
				err = w.value(v, indent, self)
				break
			}
			w.b.WriteByte(' ')
			err = w.list(v, indent+2, w.hold(self), true)
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
	if ambiguous(s) || s == mergeKey {
		return strconv.Quote(s), nil
	}
	written, err := marshalScalar(s)
	if err == nil && len(s) <= maxScalarLength {
		if w.scalars == nil || len(w.scalars) == maxScalars {
			w.scalars = map[string]string{}
		}
		w.scalars[s] = written
	}
	return written, err
}

func marshalScalar(v any) (string, error) {
	out, err := marshal(v)
	return strings.TrimSuffix(string(out), "\n"), err
}
