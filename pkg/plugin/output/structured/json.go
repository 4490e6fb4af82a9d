package structured

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Object are the fields of an object in the order in which JSON has them.
type Object []Member

// Member is a field of an Object.
type Member struct {
	Name  string
	Value any
}

// Add appends a field.
func (m Object) Add(name string, value any) Object { return append(m, Member{name, value}) }

// With appends a field, unless its string is empty.
func (m Object) With(name, text string) Object { return m.addIf(text != "", name, text) }

func (m Object) addIf(is bool, name string, value any) Object {
	if !is {
		return m
	}
	return m.Add(name, value)
}

// MarshalJSON implements json.Marshaler.
func (m Object) MarshalJSON() ([]byte, error) {
	var w jsonWriter
	err := w.value(m, "")
	return w.Bytes(), err
}

// mapped returns a value with maps in the place of Objects, for YAML.
func mapped(v any) any {
	switch v := v.(type) {
	case Object:
		out := make(map[string]any, len(v))
		for _, f := range v {
			out[f.Name] = mapped(f.Value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = mapped(v[i])
		}
		return out
	}
	return v
}

// jsonWriter writes indented JSON, the same as the library. It knows objects, lists and plain strings, and leaves the rest
// to the library, with which a whole run would take 1.7 times as long.
type jsonWriter struct{ bytes.Buffer }

// value writes a value. All lines but the first begin with a margin.
func (w *jsonWriter) value(v any, margin string) error {
	switch v := v.(type) {
	case string:
		return w.text(v)
	case int64:
		w.WriteString(strconv.FormatInt(v, 10))
		return nil
	case Object:
		if len(v) == 0 {
			w.WriteString("{}")
			return nil
		}
		return w.object(v, margin)
	case map[string]any:
		if len(v) > 0 {
			fields := make(Object, 0, len(v))
			for _, name := range slices.Sorted(maps.Keys(v)) {
				fields = fields.Add(name, v[name])
			}
			return w.object(fields, margin)
		}
	case []any:
		if len(v) > 0 {
			return w.list(v, margin)
		}
	}
	return w.encoded(v, margin)
}

// encoded writes a value by the library.
func (w *jsonWriter) encoded(v any, margin string) error {
	text, err := indented(v, margin)
	w.WriteString(text)
	return err
}

func (w *jsonWriter) text(s string) error {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return w.encoded(s, "")
		}
	}
	w.WriteByte('"')
	w.WriteString(s)
	w.WriteByte('"')
	return nil
}

func (w *jsonWriter) object(fields Object, margin string) error {
	before, below := "{\n", margin+indent
	for _, f := range fields {
		w.WriteString(before)
		w.WriteString(below)
		if err := w.text(f.Name); err != nil {
			return err
		}
		w.WriteString(": ")
		if err := w.value(f.Value, below); err != nil {
			return err
		}
		before = ",\n"
	}
	w.WriteString("\n")
	w.WriteString(margin)
	w.WriteString("}")
	return nil
}

func (w *jsonWriter) list(items []any, margin string) error {
	before, below := "[\n", margin+indent
	for _, item := range items {
		w.WriteString(before)
		w.WriteString(below)
		if err := w.value(item, below); err != nil {
			return err
		}
		before = ",\n"
	}
	w.WriteString("\n")
	w.WriteString(margin)
	w.WriteString("]")
	return nil
}

// WriteList prints items as one object of a kind, as JSON or YAML.
func WriteList[T any](out io.Writer, asYAML bool, kind string, items []T) error {
	if items == nil {
		items = []T{} // an empty list, not null
	}
	text, err := MarshalText(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []T    `json:"items"`
	}{version, kind, items}, asYAML)
	if err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	_, err = io.WriteString(out, text)
	return err
}

// WriteNames prints names as -o name does, each on a line of its own.
func WriteNames(out io.Writer, names ...string) error {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(redact.Escape(name, "") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

const indent = "    "

// MarshalText returns a value as YAML, or as indented JSON; it ends with a line break.
func MarshalText(v any, asYAML bool) (string, error) {
	if asYAML {
		out, err := objectdiff.MarshalYAML(mapped(v))
		return string(out), err
	}
	var w jsonWriter
	err := w.value(v, "")
	return w.String() + "\n", err
}

// MarshalLine returns a value as one line of JSON.
func MarshalLine(v any) (string, error) {
	out, err := compact(v)
	return string(out) + "\n", err
}

// compact returns JSON in which nothing acts on a terminal.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return redact.EscapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// indented is compact with line breaks. All lines but the first begin with a margin.
func indented(v any, margin string) (string, error) {
	text, err := compact(v)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, margin, indent)
	return b.String(), err
}
