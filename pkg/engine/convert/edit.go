package convert

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// edit is what a rule writes at a place. One of what is below the place says what.
type edit struct {
	at       place
	ifAbsent bool // only where nothing is there yet
	// unless is set for what only a new element of a list gets: the condition that the element is there.
	unless expr.Expr
	remove bool
	only   expr.Expr // the condition of a removal; nil for always
	// of a leaf, a JSON value in which strings and keys may be of type expression; nil for none
	value    any
	fields   []*edit  // of a map; nil of any other
	elements []*group // of a list
}

// expression is a part of a value that is computed.
type expression struct {
	cel  expr.Expr
	when expr.Expr // the condition that there is a value; nil for always
	// text is the expression as a string; nil where string() is.
	text func() expr.Expr
}

// isText reports whether it is a string whatever the object is.
func (x expression) isText() bool { return expr.KindOf(x.cel) == expr.Text }

// group is what a rule writes to some elements of a list.
type group struct {
	variable string // of an element, and of its index
	index    string // variable of the index
	// descending has the last element come first.
	descending bool
	where      []expr.Expr // conditions on the element; none for all of them
	// keys name one element, which is added where it is missing; empty for elements that are there.
	keys   []keyValue
	fields []*edit
	remove bool
	there  []*edit // the fields of an element with keys that is there
}

// keyValue is a key of a list with its value, an expression.
type keyValue struct {
	name    string
	cel     expr.Expr
	content any
}

func (g *group) keyed() bool { return len(g.keys) > 0 }

// patchOnly reports whether the edit has to be made with a JSON patch.
func (e *edit) patchOnly() bool {
	switch {
	case e.remove, e.nullable():
		return true
	case e.fields != nil:
		return e.at.atomic() || len(e.fields) == 0 || slices.ContainsFunc(e.fields, (*edit).patchOnly)
	case e.elements != nil:
		// A list may not have an element twice: as one with a name, and as one that is found.
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

// ordered reports whether the order of a list counts, in front of which an element is added that is missing:
// init containers start in theirs. An ApplyConfiguration adds the last one, and so comes after a JSON patch
// that adds one with only its keys.
func (e *edit) ordered() bool {
	return e.name() == "initContainers" && slices.ContainsFunc(e.elements, (*group).keyed)
}

// together reports whether an element of a list whose order counts has to be written in one piece: it is one
// of several, which an ApplyConfiguration puts in another order, or more is written to a missing one than to
// one with only its keys.
func (e *edit) together(g *group) bool {
	return len(e.elements) > 1 || e.at.of.has != nil ||
		slices.ContainsFunc(g.fields, func(f *edit) bool { return f.unless != nil })
}

// missing are the operations that put the elements that are missing in front of the lists whose order counts,
// with only their keys.
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

// applicable reports whether a whole value can be written by an ApplyConfiguration.
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

// split divides an edit into what an ApplyConfiguration can make and what a JSON patch has to; either may be
// nil.
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

// apart divides elements with keys: an ApplyConfiguration adds those that are missing, and a JSON patch gives
// all of them what else they have. Both are nil where that cannot be.
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

// nullable reports whether the value may be null, which removes what is there.
func (e *edit) nullable() bool { return e.when() != nil && !e.ifAbsent && e.at.has != nil }
