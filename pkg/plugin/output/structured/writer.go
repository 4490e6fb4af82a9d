package structured

import (
	"cmp"
	"io"
	"iter"
	"slices"
	"strings"
)

// writer writes one object piece by piece: fields in the order in which they come,
// and one list whose elements are written as they come.
type writer struct {
	out    io.Writer
	yaml   bool
	margin string // before each line of the object
	dash   bool   // the next line of YAML begins an element of a list
	fields int
	items  int
}

// member is a field of an object. Its value may be elements, or members of an object.
type member struct {
	name  string
	value any
}

// elements is a list that is made while it is written.
type elements iter.Seq[any]

func (w *writer) field(name string, v any) error {
	switch v := v.(type) {
	case elements:
		return w.list(name, v)
	case []member:
		return w.fieldObject(name, v)
	}
	text, err := w.text(map[string]any{name: v})
	if err != nil {
		return err
	}
	if !w.yaml {
		// Of {"name": value}, what is between the braces.
		text = strings.TrimPrefix(text, "{\n")
		text = w.comma() + text[:strings.LastIndexByte(text, '\n')]
	}
	w.fields++
	_, err = io.WriteString(w.out, text)
	return err
}

// text returns a value as it stands in the object; YAML ends with a line break.
func (w *writer) text(v any) (string, error) {
	if !w.yaml {
		text, err := encode(v, w.margin, indent)
		return strings.TrimSuffix(text, "\n"), err
	}
	text, err := MarshalText(v, true)
	return w.placed(text), err
}

// placed returns lines of YAML behind the margin.
func (w *writer) placed(text string) string {
	if w.margin == "" {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case w.dash:
			b.WriteString(strings.TrimSuffix(w.margin, "  ") + "- ")
		case line != "\n":
			b.WriteString(w.margin)
		}
		w.dash = false
		b.WriteString(line)
	}
	return b.String()
}

func (w *writer) comma() string {
	if w.fields == 0 {
		return "{\n"
	}
	return ",\n"
}

// list writes a field that is a list.
func (w *writer) list(name string, list elements) error {
	for v := range list {
		if err := w.item(name, v); err != nil {
			return err
		}
	}
	return w.endList(name)
}

// item writes an element of the list. One of members is written piece by piece.
func (w *writer) item(list string, v any) error {
	begin := ""
	switch {
	case w.yaml && w.items == 0:
		begin = w.placed(list + ":\n")
	case !w.yaml && w.items == 0:
		begin = w.comma() + w.margin + indent + `"` + list + "\": [\n"
	case !w.yaml:
		begin = ",\n"
	}
	w.items++
	if _, err := io.WriteString(w.out, begin); err != nil {
		return err
	}
	if members, ok := v.([]member); ok {
		return w.object(members)
	}
	text, err := w.element(v)
	if err == nil {
		_, err = io.WriteString(w.out, text)
	}
	return err
}

func (w *writer) element(v any) (string, error) {
	if w.yaml {
		return w.text([]any{v})
	}
	below := writer{margin: w.margin + indent + indent}
	text, err := below.text(v)
	return below.margin + text, err
}

// fieldObject writes a field that is an object.
func (w *writer) fieldObject(name string, members []member) error {
	begin := w.placed(name + ":\n")
	below := &writer{out: w.out, yaml: w.yaml, margin: w.margin + "  "}
	if !w.yaml {
		below.margin = w.margin + indent
		begin = w.comma() + below.margin + `"` + name + `": `
	}
	w.fields++
	if _, err := io.WriteString(w.out, begin); err != nil {
		return err
	}
	return below.members(members)
}

// object writes an element of the list.
func (w *writer) object(members []member) error {
	below := &writer{out: w.out, yaml: w.yaml, margin: w.margin + "  ", dash: true}
	if !w.yaml {
		below.margin = w.margin + indent + indent
		if _, err := io.WriteString(w.out, below.margin); err != nil {
			return err
		}
	}
	return below.members(members)
}

// members writes all of the object; in YAML they are sorted, as those of all others are.
func (w *writer) members(members []member) error {
	if w.yaml {
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	}
	for _, m := range members {
		if err := w.field(m.name, m.value); err != nil {
			return err
		}
	}
	return w.end()
}

// endList closes the list, and writes an empty one if nothing was in it.
func (w *writer) endList(name string) error {
	if w.items == 0 {
		return w.field(name, []any{})
	}
	w.fields++
	w.items = 0
	if w.yaml {
		return nil
	}
	_, err := io.WriteString(w.out, "\n"+w.margin+indent+"]")
	return err
}

// end closes the object.
func (w *writer) end() error {
	if w.yaml {
		return nil
	}
	_, err := io.WriteString(w.out, "\n"+w.margin+"}")
	return err
}
