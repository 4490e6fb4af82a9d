package engine

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Writes says where a rule writes, and where a value that it writes does not stand literally in its policy, but is
// computed or copied. What leads through a list goes for all of its items. The zero value is a place whose
// values are literal; nil stands for a rule of which nothing is known.
type Writes struct {
	Computed bool // the value, or a name in it
	Fields   map[string]*Writes
	Items    *Writes
}

// Field returns what is written to a field, which is made known.
func (w *Writes) Field(name string) *Writes {
	if w.Fields == nil {
		w.Fields = map[string]*Writes{}
	}
	if w.Fields[name] == nil {
		w.Fields[name] = &Writes{}
	}
	return w.Fields[name]
}

// Item returns what is written to the items of a list, which is made known.
func (w *Writes) Item() *Writes {
	if w.Items == nil {
		w.Items = &Writes{}
	}
	return w.Items
}

// Add adds what another rule writes.
func (w *Writes) Add(other *Writes) {
	if other == nil || other.Computed {
		*w = Writes{Computed: true}
	}
	if w.Computed {
		return
	}
	for name, field := range other.Fields {
		w.Field(name).Add(field)
	}
	if other.Items != nil {
		w.Item().Add(other.Items)
	}
}

// Cover reports whether the path is one to which the rule writes, or leads to one, or is a part of one.
func (w *Writes) Cover(p fieldpath.Path) bool {
	for _, e := range p {
		switch {
		case w == nil:
			return false
		case w.Computed || w.Fields == nil && w.Items == nil:
			return true
		case e.FieldName == nil:
			w = w.Items
		default:
			w = w.Fields[*e.FieldName]
		}
	}
	return w != nil
}

// Taints reports whether the step writes what may have been made of a Secret.
func (s *Step) Taints() bool { return s.Confidential && s.Outcome == Changed && s.Writes.computes() }

func (w *Writes) computes() bool {
	if w == nil || w.Computed || w.Items != nil && w.Items.computes() {
		return true
	}
	for _, field := range w.Fields {
		if field.computes() {
			return true
		}
	}
	return false
}
