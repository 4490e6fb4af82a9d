package convert

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// edit writes to a place: it removes it, or sets a value, fields of a map or elements of a list.
type edit struct {
	at       place
	ifAbsent bool // only if nothing exists yet
	// unless is the condition that the element exists; set for a value that only a new element gets.
	unless expr.Expr
	remove bool
	only   expr.Expr // the condition of a removal; nil for always
	// of a leaf, a JSON value whose strings and keys may be of type expression; nil for other edits
	value    any
	fields   []*edit  // of a map; else nil
	elements []*group // of a list
}

// expression is a computed part of a value.
type expression struct {
	cel  expr.Expr
	when expr.Expr // the condition that there is a value; nil: always
	// text returns the expression as a string; nil means string().
	text func() expr.Expr
}

// isText reports whether the result is always a string.
func (x expression) isText() bool { return expr.KindOf(x.cel) == expr.Text }

// group edits some elements of a list.
type group struct {
	variable string // of an element, and of its index
	index    string // variable of the index
	// descending visits the last element first.
	descending bool
	where      []expr.Expr // conditions on the element; none: all elements
	// keys identify one element, which is added if missing; empty for existing elements.
	keys   []keyValue
	fields []*edit
	remove bool
	there  []*edit // the fields of an existing element with keys
}

type keyValue struct {
	name    string
	cel     expr.Expr
	content any
}

func (g *group) keyed() bool { return len(g.keys) > 0 }

// patchOnly reports whether the edit requires a JSON patch.
func (e *edit) patchOnly() bool {
	switch {
	case e.remove, e.nullable():
		return true
	case e.fields != nil:
		return e.at.atomic() || len(e.fields) == 0 || slices.ContainsFunc(e.fields, (*edit).patchOnly)
	case e.elements != nil:
		// A list may not contain an element twice: as a named one and as a found one.
		mixed := slices.ContainsFunc(e.elements, func(g *group) bool { return g.keyed() != e.elements[0].keyed() })
		return mixed || len(e.at.listKeys()) == 0 || e.at.element("", nil).atomic() ||
			slices.ContainsFunc(e.elements, func(g *group) bool {
				return g.remove || e.ordered() && e.together(g) || slices.ContainsFunc(g.fields, (*edit).patchOnly) ||
					slices.ContainsFunc(g.keys, func(k keyValue) bool { return k.cel == nil })
			})
	case e.unless != nil:
		return e.at.atomic()
	case !e.at.known():
		return true
	}
	switch value := e.value.(type) {
	case map[string]any, []any, nil:
		return !applicable(e.value, e.at)
	case expression:
		return !value.isText() && e.at.scalar() == "" && (!e.at.texts() || e.at.atomic())
	}
	return false
}

// ordered reports whether a missing element is put in front of a list whose order matters: init containers
// start in order. An ApplyConfiguration appends, so it follows a JSON patch that adds the keys.
func (e *edit) ordered() bool {
	return e.name() == "initContainers" && slices.ContainsFunc(e.elements, (*group).keyed)
}

// together reports whether an element of an ordered list must be written at once: it is one of several, which
// an ApplyConfiguration would reorder, or more is written to a missing element than to one with only its
// keys.
func (e *edit) together(g *group) bool {
	return len(e.elements) > 1 || e.at.of.has != nil ||
		slices.ContainsFunc(g.fields, func(f *edit) bool { return f.unless != nil })
}

// missing returns the operations that put missing elements, with only their keys, in front of ordered lists.
func (o *operations) missing(edits []*edit) {
	for _, e := range edits {
		o.missing(e.fields)
		if e.ordered() {
			g, list := e.elements[0], e.at.elements()
			all := expr.Sum(expr.Elements(data(wholeOf(nil, g.keys))), list)
			o.when(expr.Not(g.exists(list)), oneOperation(operation("add", e.at.jsonPointer(), all)))
		}
	}
}

// applicable reports whether an ApplyConfiguration can write a whole value.
func applicable(content any, at place) bool {
	switch v := content.(type) {
	case map[string]any:
		if at.atomic() || len(v) == 0 {
			return false
		}
		for key, below := range v {
			if !applicable(below, at.field(key, false)) {
				return false
			}
		}
		return true
	case []any, nil:
		return false
	}
	return at.known()
}

// split divides an edit between an ApplyConfiguration and a JSON patch; either may be nil.
func (e *edit) split() (apply, patch *edit) {
	switch {
	case e.fields != nil && !e.at.atomic():
		a, p := splitAll(e.fields)
		return e.with(a), e.with(p)
	case e.nullable() && e.at.known() && (e.at.scalar() != "" || !e.at.atomic()):
		return e, &edit{at: e.at, remove: true, only: expr.Not(e.when())}
	case e.elements != nil:
		if apply, patch = e.apart(); apply != nil {
			return apply, patch
		}
	}
	if e.patchOnly() {
		return nil, e
	}
	return e, nil
}

// apart splits an edit of keyed elements: an ApplyConfiguration adds the missing ones, and a JSON patch sets
// the other fields. Both are nil if that is impossible.
func (e *edit) apart() (apply, patch *edit) {
	added, rest := *e, *e
	added.elements, rest.elements = nil, nil
	for _, g := range e.elements {
		whole := *g
		fields, left := splitAll(g.fields)
		if whole.fields = fields; !g.keyed() || g.remove ||
			slices.ContainsFunc(left, func(f *edit) bool { return f.unless != nil }) {
			return nil, nil
		}
		added.elements = append(added.elements, &whole)
		if _, there := splitAll(g.there); len(there) > 0 {
			rest.elements = append(rest.elements,
				&group{variable: g.variable, index: g.index, where: g.where, fields: there})
		}
	}
	if len(rest.elements) == 0 || added.patchOnly() {
		return nil, nil
	}
	return &added, &rest
}

func (e *edit) with(fields []*edit) *edit {
	if len(fields) == 0 {
		return nil
	}
	out := *e
	out.fields = fields
	return &out
}

func splitAll(edits []*edit) (apply, patch []*edit) {
	for _, e := range edits {
		a, p := e.split()
		if a != nil {
			apply = append(apply, a)
		}
		if p != nil {
			patch = append(patch, p)
		}
	}
	return apply, patch
}

// nullable reports whether the value may be null, which removes the field.
func (e *edit) nullable() bool { return e.when() != nil && !e.ifAbsent && e.at.has != nil }
