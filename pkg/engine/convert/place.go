package convert

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/go-openapi/jsonpointer"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// place is a field of the object or of a list element: how expressions read it, and its JSON pointer.
type place struct {
	root string    // "object", or an element's variable; empty for a value outside the object
	of   *place    // the parent of the field, or the list of an indexed element; nil for a root
	key  expr.Expr // a computed key, or an index; nil: a field
	// plain is the value if it exists, found an optional of it, and has the condition that it exists. The last
	// two are nil if it always exists.
	plain, found, has expr.Expr
	// pointer is the JSON pointer in parts.
	pointer []expr.Expr
	// types are the types of the place in the schemas of the rule's kinds; at least one.
	types []diff.Type
	// path is the path of field names from the object, with "[]" for list elements.
	path []string
	// absent reports that root is an optional.
	absent bool
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// child is a place below another one.
func (p place) child(plain func(of expr.Expr) expr.Expr, sure bool, name string, pointer expr.Expr,
	typ func(diff.Type) diff.Type,
) place {
	out := p
	out.of, out.key = &p, nil
	out.path, out.pointer = append(slices.Clip(p.path), name), append(slices.Clip(p.pointer), pointer)
	out.plain, out.types = plain(p.plain), typesOf(p.types, typ)
	if sure && p.found == nil {
		return out
	}
	out.found = expr.Marked(plain(cmp.Or(p.found, p.plain)))
	out.has = expr.HasValue(out.found)
	if p.absent {
		out.plain = expr.Method(out.found, "value")
	} else if p.found == nil && expr.IsIdentifier(name) {
		out.has = expr.Call("has", out.plain)
	}
	return out
}

func fieldOf(name string) func(diff.Type) diff.Type {
	return func(t diff.Type) diff.Type { return t.Field(name) }
}

// typesOf maps types to the types of a part.
func typesOf(types []diff.Type, part func(diff.Type) diff.Type) []diff.Type {
	out := make([]diff.Type, len(types))
	for i, t := range types {
		out[i] = part(t)
	}
	return out
}

// shape is the common shape of the place in all schemas. It is unknown if a kind lacks the place or has
// another shape: a value for the first kind would be denied for another one.
func (p place) shape() (atom schema.Atom, ok bool) {
	atom, ok = p.types[0].Atom()
	for _, t := range p.types[1:] {
		other, known := t.Atom()
		ok = ok && known && sameSort(atom, other)
	}
	return atom, ok
}

// sameSort reports whether values of two types are written alike.
func sameSort(a, b schema.Atom) bool {
	if (a.Scalar == nil) != (b.Scalar == nil) || (a.List == nil) != (b.List == nil) ||
		(a.Map == nil) != (b.Map == nil) {
		return false
	}
	return (a.Scalar == nil || *a.Scalar == *b.Scalar) &&
		(a.List == nil ||
			a.List.ElementRelationship == b.List.ElementRelationship && slices.Equal(a.List.Keys, b.List.Keys)) &&
		(a.Map == nil || a.Map.ElementRelationship == b.Map.ElementRelationship &&
			(len(a.Map.Fields) == 0) == (len(b.Map.Fields) == 0))
}

func (p place) field(name string, sure bool) place {
	return p.child(func(of expr.Expr) expr.Expr { return expr.Field(of, name) }, sure, name,
		expr.String(jsonpointer.Escape(name)), fieldOf(name))
}

func (p place) computed(key expr.Expr) place {
	out := p.child(func(of expr.Expr) expr.Expr { return expr.Index(of, key) }, false, "{}",
		expr.Call("jsonpatch.escapeKey", key), fieldOf(""))
	out.key = key
	return out
}

func (p place) index(index, pointer expr.Expr) place {
	out := p.child(func(of expr.Expr) expr.Expr { return expr.Index(of, index) }, false, "[]",
		pointer, diff.Type.Element)
	out.key = index
	return out
}

// element is the place of a list element that a variable holds; index is the expression of its index.
func (p place) element(variable string, index expr.Expr) place {
	return place{
		root: variable, plain: expr.Name(variable), pointer: append(slices.Clip(p.pointer), index),
		types: typesOf(p.types, diff.Type.Element),
		path:  append(slices.Clip(p.path), "[]"),
	}
}

func (p place) optional(root expr.Expr) place {
	p.root, p.absent = root.String(), true
	p.found, p.plain, p.has = root, expr.Method(root, "value"), expr.HasValue(root)
	return p
}

// access reads the place: an optional if it may be absent, else the value.
func (p place) access() expr.Expr { return cmp.Or(p.found, p.plain) }

// or returns the value or a default.
func (p place) or(fallback expr.Expr) expr.Expr {
	if p.found == nil {
		return p.plain
	}
	return expr.OrValue(p.found, fallback)
}

// elements is the list at the place, or an empty list.
func (p place) elements() expr.Expr { return p.or(expr.List()) }

// value is the value at the place for translation.
func (p place) value() translate.Value {
	t := translate.TypeOf(p.types...)
	if p.parentIsLabels() {
		t = translate.Text
		if p.path[len(p.path)-2] == "labels" {
			t = translate.Label
		}
	}
	if p.found == nil {
		return translate.Expression(p.plain, t)
	}
	return translate.Found(p.has, p.found, p.plain, t)
}

// jsonPointer is the JSON pointer of the place, or of one below it, as an expression.
func (p place) jsonPointer(below ...expr.Expr) expr.Expr {
	text, out := "", []expr.Expr{}
	for _, part := range append(slices.Clip(p.pointer), below...) {
		terms := expr.Terms(part)
		text += "/"
		if constant, ok := expr.StringOf(terms[0]); ok {
			text, terms = text+constant, terms[1:]
		}
		if len(terms) > 0 {
			out, text = append(append(out, expr.String(text)), terms...), ""
		}
	}
	if text != "" || len(out) == 0 {
		out = append(out, expr.String(text))
	}
	return expr.Sum(out...)
}

// object is the name of the place's type: Object.spec.containers.
func (p place) object() string {
	out := "Object"
	for _, name := range p.path {
		if name != "[]" {
			out += "." + name
		}
	}
	return out
}

// atomic reports whether an ApplyConfiguration can only replace the map or list as a whole.
func (p place) atomic() bool {
	atom, ok := p.shape()
	switch {
	case !ok:
		return true
	case atom.Map != nil && atom.List != nil: // any value
		return true
	case atom.Map != nil:
		return atom.Map.ElementRelationship == schema.Atomic
	case atom.List != nil:
		return atom.List.ElementRelationship != schema.Associative
	}
	return false
}

// listKeys are the keys by which an ApplyConfiguration merges the list.
func (p place) listKeys() []string {
	if atom, ok := p.shape(); ok && atom.List != nil && atom.List.ElementRelationship == schema.Associative {
		return atom.List.Keys
	}
	return nil
}

// texts reports whether the place is a map whose keys are not fields, such as labels.
func (p place) texts() bool {
	atom, ok := p.shape()
	// a possible scalar may be anything
	return ok && atom.Map != nil && atom.Scalar == nil && len(atom.Map.Fields) == 0
}

// scalar is the scalar type in the schema; empty if unknown.
func (p place) scalar() schema.Scalar {
	if atom, ok := p.shape(); ok && atom.Scalar != nil && atom.Map == nil && atom.List == nil {
		return *atom.Scalar
	}
	return ""
}

func (p place) known() bool { _, ok := p.shape(); return ok }

// isLabels reports whether the place is a map with only string values.
func (p place) isLabels() bool {
	n := len(p.path)
	return n > 1 && p.path[n-2] == "metadata" && (p.path[n-1] == "labels" || p.path[n-1] == "annotations")
}
