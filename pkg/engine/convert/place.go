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

// place is a field of the object, or of an element of one of its lists: how an expression reads it, and
// which JSON pointer names it.
type place struct {
	root string    // "object", or the variable of a list's element; empty for what is no place of the object
	of   *place    // what it is a field of, or the list that it is an element of by an index; nil for a root
	key  expr.Expr // a computed key, or an index; nil for a field
	// plain is the value where it is there, found an optional of it, and has the condition that it is there. The latter are nil
	// where it always is.
	plain, found, has expr.Expr
	// pointer has the parts of the JSON pointer.
	pointer []expr.Expr
	typ     diff.Type
	// path has the names of fields from the object on, "[]" for the elements of a list.
	path []string
	// absent reports that root itself is an optional.
	absent bool
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// below is a place in another one: its value, the end of its path and of its pointer, and its type.
func (p place) below(plain func(of expr.Expr) expr.Expr, sure bool, name string, pointer expr.Expr, typ diff.Type) place {
	out := p
	out.of, out.key = &p, nil
	out.path, out.pointer = append(slices.Clip(p.path), name), append(slices.Clip(p.pointer), pointer)
	out.plain, out.typ = plain(p.plain), typ
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

// field is the place of a field.
func (p place) field(name string, sure bool) place {
	return p.below(func(of expr.Expr) expr.Expr { return expr.Field(of, name) }, sure, name, expr.String(jsonpointer.Escape(name)), p.typ.Field(name))
}

// computed is the place of the value of a key that an expression computes.
func (p place) computed(key expr.Expr) place {
	out := p.below(func(of expr.Expr) expr.Expr { return expr.Index(of, key) }, false, "{}", expr.Call("jsonpatch.escapeKey", key), p.typ.Field(""))
	out.key = key
	return out
}

// at is the element of a list with an index.
func (p place) at(index, pointer expr.Expr) place {
	out := p.below(func(of expr.Expr) expr.Expr { return expr.Index(of, index) }, false, "[]", pointer, p.typ.Element())
	out.key = index
	return out
}

// element is an element of the list at the place, which a variable holds; index is the expression of its place in
// the list.
func (p place) element(variable string, index expr.Expr) place {
	return place{
		root: variable, plain: expr.Name(variable), pointer: append(slices.Clip(p.pointer), index), typ: p.typ.Element(),
		path: append(slices.Clip(p.path), "[]"),
	}
}

// optional is the place where its root is an optional.
func (p place) optional(root expr.Expr) place {
	p.root, p.absent = root.String(), true
	p.found, p.plain, p.has = root, expr.Method(root, "value"), expr.HasValue(root)
	return p
}

// access is an expression for the place: an optional if it may be absent, else the value.
func (p place) access() expr.Expr { return cmp.Or(p.found, p.plain) }

// or is the value, or a default where there is none.
func (p place) or(fallback expr.Expr) expr.Expr {
	if p.found == nil {
		return p.plain
	}
	return expr.OrValue(p.found, fallback)
}

// elements is the value of a list, or an empty one.
func (p place) elements() expr.Expr { return p.or(expr.List()) }

// value is the value at the place, in the terms of expressions.
func (p place) value() translate.Value {
	t := translate.TypeOf(p.typ)
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

// jsonPointer is an expression that is the JSON pointer of the place, or of one below it.
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

// object is the spelling of the type at the place: Object.spec.containers.
func (p place) object() string {
	out := "Object"
	for _, name := range p.path {
		if name != "[]" {
			out += "." + name
		}
	}
	return out
}

// atomic reports whether a map or list at the place cannot be changed in part by an ApplyConfiguration.
func (p place) atomic() bool {
	atom, ok := p.typ.Atom()
	switch {
	case !ok:
		return true
	case atom.Map != nil && atom.List != nil: // anything
		return true
	case atom.Map != nil:
		return atom.Map.ElementRelationship == schema.Atomic
	case atom.List != nil:
		return atom.List.ElementRelationship != schema.Associative
	}
	return false
}

// listKeys are the keys by which an ApplyConfiguration merges the list at the place.
func (p place) listKeys() []string {
	if atom, ok := p.typ.Atom(); ok && atom.List != nil && atom.List.ElementRelationship == schema.Associative {
		return atom.List.Keys
	}
	return nil
}

// texts reports whether the place is a map whose keys are no fields, such as labels.
func (p place) texts() bool {
	atom, ok := p.typ.Atom()
	return ok && atom.Map != nil && atom.Scalar == nil && len(atom.Map.Fields) == 0 // what may be a scalar may be anything
}

// scalar is the type of a scalar at the place, as the schema has it; empty if it is not known.
func (p place) scalar() schema.Scalar {
	if atom, ok := p.typ.Atom(); ok && atom.Scalar != nil && atom.Map == nil && atom.List == nil {
		return *atom.Scalar
	}
	return ""
}

// known reports whether the schema has the place.
func (p place) known() bool { _, ok := p.typ.Atom(); return ok }

// isLabels reports whether the place is a map whose values are always strings.
func (p place) isLabels() bool {
	n := len(p.path)
	return n > 1 && p.path[n-2] == "metadata" && (p.path[n-1] == "labels" || p.path[n-1] == "annotations")
}
