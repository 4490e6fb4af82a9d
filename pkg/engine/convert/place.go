package convert

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// place is a field of the object, or of an element of one of its lists: how an expression reads it, and
// which JSON pointer names it.
type place struct {
	root  string // "object", or the variable of a list's element
	steps []step
	// pointer has the parts of the JSON pointer, each an expression that is a string.
	pointer []string
	typ     diff.Type
	// path has the names of fields from the object on, "[]" for the elements of a list.
	path []string
	// absent reports that root itself is an optional.
	absent bool
}

// step leads from a map to one of its values.
type step struct {
	name string // of a field; empty for a computed key
	expr string // an expression that is the key
	sure bool   // the field is always there
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// word reports whether a name can stand behind a dot.
func word(name string) bool {
	return identifier.MatchString(name) && !slices.Contains([]string{"in", "true", "false", "null", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}, name) || name == "namespace"
}

func quote(text string) string { return strconv.Quote(text) }

// field is the place of a field.
func (p place) field(name string, sure bool) place {
	out := p
	out.path = append(slices.Clip(p.path), name)
	out.steps = append(slices.Clip(p.steps), step{name: name, sure: sure})
	out.pointer = append(slices.Clip(p.pointer), quote(jsonpointer.Escape(name)))
	out.typ = fieldType(p.typ, name)
	return out
}

// computed is the place of the value of a key that an expression computes.
func (p place) computed(expr string) place {
	out := p
	out.path = append(slices.Clip(p.path), "{}")
	out.steps = append(slices.Clip(p.steps), step{expr: expr})
	out.pointer = append(slices.Clip(p.pointer), "jsonpatch.escapeKey("+expr+")")
	out.typ = fieldType(p.typ, "")
	return out
}

// element is an element of the list at the place, which a variable holds; index is the expression of its place in
// the list.
func (p place) element(variable, index string) place {
	return place{
		root: variable, pointer: append(slices.Clip(p.pointer), index), typ: elementType(p.typ),
		path: append(slices.Clip(p.path), "[]"),
	}
}

// maybe reports whether something before the place may be absent, and how far all is sure.
func (p place) maybe() bool {
	return p.absent || slices.ContainsFunc(p.steps, func(s step) bool { return !s.sure })
}

// access is an expression for the place: an optional if maybe, else the value.
func (p place) access() string {
	var b strings.Builder
	b.WriteString(p.root)
	optional := p.absent
	for _, s := range p.steps {
		mark := ""
		if !s.sure || optional {
			optional, mark = true, "?"
		}
		switch {
		case s.name != "" && word(s.name):
			b.WriteString("." + mark + s.name)
		case s.name != "":
			b.WriteString("[" + mark + quote(s.name) + "]")
		default:
			b.WriteString("[" + mark + s.expr + "]")
		}
	}
	return b.String()
}

// plain is an expression for the place where it is there.
func (p place) plain() string {
	q := p
	q.steps = slices.Clone(p.steps)
	for i := range q.steps {
		q.steps[i].sure = true
	}
	if p.absent {
		return q.access() + ".value()"
	}
	return q.access()
}

// has is a condition: the place is there.
func (p place) has() string {
	if !p.maybe() {
		return "true"
	}
	last := len(p.steps) - 1
	before := p
	if last >= 0 {
		before.steps = p.steps[:last]
		if !before.maybe() && word(p.steps[last].name) {
			return "has(" + p.plain() + ")"
		}
	}
	return p.access() + ".hasValue()"
}

// or is the value, or a default where there is none.
func (p place) or(fallback string) string {
	if !p.maybe() {
		return p.access()
	}
	return p.access() + ".orValue(" + fallback + ")"
}

// value is the value at the place, in the terms of expressions.
func (p place) value() translate.Value {
	t := translate.TypeOf(p.typ)
	if p.parentIsLabels() {
		t = translate.Text
		if p.path[len(p.path)-2] == "labels" {
			t = translate.Label
		}
	}
	if !p.maybe() {
		return translate.Expression(expr.Name(p.plain()), t)
	}
	return translate.Found(expr.Name(p.has()), expr.Typed(expr.Name(p.access()), expr.OptionalKind), expr.Name(p.plain()), t)
}

// jsonPointer is an expression that is the JSON pointer of the place, or of one below it.
func (p place) jsonPointer(below ...string) string {
	return pointerText(append(slices.Clip(p.pointer), below...))
}

// constantFirst matches a text that begins with a constant.
var constantFirst = regexp.MustCompile(`^("(?:[^"\\]|\\.)*") \+ (.*)$`)

// pointerText joins the parts of a JSON pointer; constant ones become one text.
func pointerText(parts []string) string {
	var out []string
	text := ""
	flush := func() {
		if text != "" {
			out = append(out, quote(text))
		}
		text = ""
	}
	for _, part := range parts {
		text += "/"
		if constant, err := strconv.Unquote(part); err == nil {
			text += constant
			continue
		}
		if m := constantFirst.FindStringSubmatch(part); m != nil {
			if constant, err := strconv.Unquote(m[1]); err == nil {
				text, part = text+constant, m[2]
			}
		}
		flush()
		out = append(out, part)
	}
	flush()
	return strings.Join(out, " + ")
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

func atomOf(t diff.Type) (schema.Atom, bool) {
	if t.Schema == nil {
		return schema.Atom{}, false
	}
	return t.Schema.Resolve(t.Ref)
}

func fieldType(t diff.Type, name string) diff.Type {
	out := diff.Type{EmptyIsAbsent: t.EmptyIsAbsent}
	atom, ok := atomOf(t)
	if !ok || atom.Map == nil {
		return out
	}
	ref := atom.Map.ElementType
	if f, found := atom.Map.FindField(name); found {
		ref = f.Type
	}
	out.Schema, out.Ref = t.Schema, ref
	return out
}

func elementType(t diff.Type) diff.Type {
	out := diff.Type{EmptyIsAbsent: t.EmptyIsAbsent}
	if atom, ok := atomOf(t); ok && atom.List != nil {
		out.Schema, out.Ref = t.Schema, atom.List.ElementType
	}
	return out
}

// atomic reports whether a map or list at the place cannot be changed in part by an ApplyConfiguration.
func (p place) atomic() bool {
	atom, ok := atomOf(p.typ)
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
	if atom, ok := atomOf(p.typ); ok && atom.List != nil && atom.List.ElementRelationship == schema.Associative {
		return atom.List.Keys
	}
	return nil
}

// texts reports whether the place is a map whose keys are no fields, such as labels.
func (p place) texts() bool {
	atom, ok := atomOf(p.typ)
	return ok && atom.Map != nil && atom.Scalar == nil && len(atom.Map.Fields) == 0 // what may be a scalar may be anything
}

// scalar is the type of a scalar at the place, as the schema has it; empty if it is not known.
func (p place) scalar() schema.Scalar {
	if atom, ok := atomOf(p.typ); ok && atom.Scalar != nil && atom.Map == nil && atom.List == nil {
		return *atom.Scalar
	}
	return ""
}

// known reports whether the schema has the place.
func (p place) known() bool { _, ok := atomOf(p.typ); return ok }

// isLabels reports whether the place is a map whose values are always strings.
func (p place) isLabels() bool {
	n := len(p.path)
	return n > 1 && p.path[n-2] == "metadata" && (p.path[n-1] == "labels" || p.path[n-1] == "annotations")
}
