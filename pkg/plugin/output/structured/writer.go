package structured

import (
	"cmp"
	"io"
	"iter"
	"slices"
	"strings"
)

// writer writes one object piece by piece: fields in the order in which they come,
// and one list whose elements are written as they come. An error of the output is returned by Flush.
type writer struct {
	jsonWriter
	yaml   bool
	margin string // before each line of the object
	dash   bool   // the next line of YAML begins an element of a list
	fields int
	items  int
}

func newWriter(out io.Writer, asYAML bool) writer {
	return writer{jsonWriter: jsonWriter{&buffer{out: out}}, yaml: asYAML}
}

// member is a field of an object. Its value may be elements, or members of an object.
type member struct {
	name  string
	value any
}

// elements is a list that is made while it is written.
type elements iter.Seq[any]

// record is an object that is small: in YAML it is written as one value.
type record []member

func (r record) fields() map[string]any {
	out := make(map[string]any, len(r))
	for _, m := range r {
		out[m.name] = m.value
	}
	return out
}

func (w *writer) field(name string, v any) error {
	switch v := v.(type) {
	case elements:
		return w.list(name, v)
	case []member:
		return w.fieldObject(name, v)
	}
	if w.yaml {
		w.fields++
		return w.lines(map[string]any{name: v})
	}
	w.separate()
	return w.member(name, v, deeper(w.margin))
}

// lines writes a value as YAML.
func (w *writer) lines(v any) error {
	text, err := MarshalText(v, true)
	w.place(text)
	return err
}

// place writes lines of YAML behind the margin.
func (w *writer) place(text string) {
	for line := range strings.Lines(text) {
		switch {
		case w.dash:
			w.put(strings.TrimSuffix(w.margin, "  "))
			w.put("- ")
		case line != "\n":
			w.put(w.margin)
		}
		w.dash = false
		w.put(line)
	}
}

// separate writes what stands before a field of JSON.
func (w *writer) separate() {
	if w.fields == 0 {
		w.put("{\n")
	} else {
		w.put(",\n")
	}
	w.fields++
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
	switch {
	case w.yaml && w.items == 0:
		w.place(list + ":\n")
	case w.yaml:
	case w.items == 0:
		w.separate()
		w.put(deeper(w.margin) + `"` + list + "\": [\n")
	default:
		w.put(",\n")
	}
	w.items++
	below := &writer{jsonWriter: w.jsonWriter, yaml: w.yaml, margin: w.margin + "  ", dash: true}
	if !w.yaml {
		below.margin = deeper(deeper(w.margin))
		w.put(below.margin)
	}
	switch v := v.(type) {
	case []member:
		return below.members(v)
	case record:
		if !w.yaml {
			return below.members(v)
		}
		return w.lines([]any{v.fields()})
	}
	if w.yaml {
		return w.lines([]any{v})
	}
	return w.value(v, below.margin)
}

// fieldObject writes a field that is an object.
func (w *writer) fieldObject(name string, members []member) error {
	below := &writer{jsonWriter: w.jsonWriter, yaml: w.yaml, margin: w.margin + "  "}
	if w.yaml {
		w.fields++
		w.place(name + ":\n")
	} else {
		below.margin = deeper(w.margin)
		w.separate()
		w.put(below.margin + `"` + name + `": `)
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
	w.end()
	return nil
}

// endList closes the list, and writes an empty one if nothing was in it.
func (w *writer) endList(name string) error {
	if w.items == 0 {
		return w.field(name, []any{})
	}
	w.fields++
	w.items = 0
	if !w.yaml {
		w.put("\n" + deeper(w.margin) + "]")
	}
	return nil
}

// end closes the object.
func (w *writer) end() {
	if !w.yaml {
		w.put("\n" + w.margin + "}")
	}
}
