package structured

import (
	"io"
	"strings"
)

// writer writes one object piece by piece: fields in the order in which they come,
// and one list whose elements are written as they come.
type writer struct {
	out    io.Writer
	yaml   bool
	fields int
	items  int
}

func (w *writer) field(name string, v any) error {
	text, err := MarshalText(map[string]any{name: v}, w.yaml)
	if err != nil {
		return err
	}
	if !w.yaml {
		// Of {"name": value}, what is between the braces.
		text = strings.TrimSuffix(strings.TrimPrefix(text, "{\n"), "\n}\n")
		text = w.comma() + text
	}
	w.fields++
	_, err = io.WriteString(w.out, text)
	return err
}

func (w *writer) comma() string {
	if w.fields == 0 {
		return "{\n"
	}
	return ",\n"
}

func (w *writer) item(list string, v any) error {
	text, err := MarshalText([]any{v}, w.yaml)
	if err != nil {
		return err
	}
	var b strings.Builder
	switch {
	case w.yaml && w.items == 0:
		b.WriteString(list + ":\n")
	case !w.yaml && w.items == 0:
		b.WriteString(w.comma() + `    "` + list + "\": [\n")
	case !w.yaml:
		b.WriteString(",\n")
	}
	if w.yaml {
		b.WriteString(text)
	} else {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "[\n"), "\n]\n")
		b.WriteString("    " + strings.ReplaceAll(text, "\n", "\n    "))
	}
	w.items++
	_, err = io.WriteString(w.out, b.String())
	return err
}

// endList closes the list, and writes an empty one if nothing was in it.
func (w *writer) endList(name string) error {
	if w.items == 0 {
		return w.field(name, []any{})
	}
	w.fields++
	if w.yaml {
		return nil
	}
	_, err := io.WriteString(w.out, "\n    ]")
	return err
}

func (w *writer) end() error {
	if w.yaml {
		return nil
	}
	_, err := io.WriteString(w.out, "\n}\n")
	return err
}
