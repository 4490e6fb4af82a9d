package structured

import (
	"io"
	"slices"
	"strconv"
	"strings"
)

// jsonWriter writes indented JSON, the same that encode returns. It knows the shapes of objects, and leaves the rest
// to the library, which goes over a text several times: for whole objects that would be most of the time of a report.
// An error of the output is returned by Flush.
type jsonWriter struct{ *buffer }

// buffer is text on its way out. It is what a bufio.Writer is, but for that what it is given is short, and appended without
// a call.
type buffer struct {
	out  io.Writer
	text []byte
	err  error
	keys []string // of the objects that are being written, one behind the other
}

// bufferSize is small enough to stay in the cache of a processor, and large enough for few writes.
const bufferSize = 32 << 10

func (b *buffer) put(text string) {
	if len(b.text)+len(text) > bufferSize {
		_ = b.Flush()
	}
	b.text = append(b.text, text...)
}

// Flush writes what is held, and returns the first error of the output.
func (b *buffer) Flush() error {
	if b.err == nil && len(b.text) > 0 {
		_, b.err = b.out.Write(b.text)
	}
	b.text = b.text[:0]
	return b.err
}

// deeper is a margin with one more indent.
func deeper(margin string) string {
	const spaces = "                                                                "
	if n := len(margin) + len(indent); n <= len(spaces) {
		return spaces[:n]
	}
	return margin + indent
}

// value writes a value. All lines but the first begin with a margin.
func (w jsonWriter) value(v any, margin string) error {
	switch v := v.(type) {
	case string:
		return w.text(v)
	case bool:
		w.put(strconv.FormatBool(v))
		return nil
	case int64:
		w.put(strconv.FormatInt(v, 10))
		return nil
	case map[string]any:
		switch {
		case len(v) > 0:
			return w.object(v, margin)
		case v != nil:
			w.put("{}")
			return nil
		}
	case []any:
		switch {
		case len(v) > 0:
			return w.array(v, margin)
		case v != nil:
			w.put("[]")
			return nil
		}
	}
	return w.encoded(v, margin)
}

// encoded writes a value by the library.
func (w jsonWriter) encoded(v any, margin string) error {
	text, err := encode(v, margin, indent)
	w.put(strings.TrimSuffix(text, "\n"))
	return err
}

func (w jsonWriter) text(s string) error {
	escapes := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return w.encoded(s, "")
		case c == '"' || c == '\\':
			escapes++
		}
	}
	w.put(`"`)
	for ; escapes > 0; escapes-- {
		i := strings.IndexAny(s, `"\`)
		w.put(s[:i])
		w.put(`\`)
		w.put(s[i : i+1])
		s = s[i+1:]
	}
	w.put(s)
	w.put(`"`)
	return nil
}

func (w jsonWriter) object(m map[string]any, margin string) error {
	first := len(w.keys)
	for key := range m {
		w.keys = append(w.keys, key)
	}
	keys := w.keys[first:]
	defer func() { w.keys = w.keys[:first] }()
	slices.Sort(keys)
	begin, below := "{\n", deeper(margin)
	for _, key := range keys {
		w.put(begin)
		begin = ",\n"
		if err := w.member(key, m[key], below); err != nil {
			return err
		}
	}
	w.put("\n")
	w.put(margin)
	w.put("}")
	return nil
}

// member writes a field of an object on a line behind a margin.
func (w jsonWriter) member(name string, v any, margin string) error {
	w.put(margin)
	if err := w.text(name); err != nil {
		return err
	}
	w.put(": ")
	return w.value(v, margin)
}

func (w jsonWriter) array(items []any, margin string) error {
	begin, below := "[\n", deeper(margin)
	for _, item := range items {
		w.put(begin)
		begin = ",\n"
		w.put(below)
		if err := w.value(item, below); err != nil {
			return err
		}
	}
	w.put("\n")
	w.put(margin)
	w.put("]")
	return nil
}
