package convert

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

// operations are the operations of a JSON patch, in order: expressions that are lists of operations.
type operations struct {
	parts []part
	made  []string    // pointers of maps and lists that exist by now
	outer *operations // of the enclosing loop
}

// part is one operation, possibly conditional, or an expression that is a list of them.
type part struct {
	cel  expr.Expr
	when expr.Expr // nil: always
	many bool
}

func oneOperation(cel expr.Expr) *operations { return &operations{parts: []part{{cel: cel}}} }

func (o *operations) one(cel expr.Expr) { o.parts = append(o.parts, part{cel: cel}) }

func (o *operations) list(cel expr.Expr) { o.parts = append(o.parts, part{cel: cel, many: true}) }

func (o *operations) when(condition expr.Expr, then *operations) {
	always, constant := expr.BoolOf(condition)
	switch {
	case len(then.parts) == 0, constant && !always:
	case always:
		o.parts = append(o.parts, then.parts...)
	case len(then.parts) == 1 && !then.parts[0].many && then.parts[0].when == nil:
		o.parts = append(o.parts, part{cel: then.parts[0].cel, when: condition})
	default:
		o.list(expr.Cond(condition, then.expr(), expr.List()))
	}
}

func (o *operations) expr() expr.Expr {
	var lists, ones []expr.Expr
	flush := func() {
		if len(ones) > 0 {
			lists, ones = append(lists, expr.Elements(ones...)), nil
		}
	}
	for _, p := range o.parts {
		if !p.many && p.when == nil {
			ones = append(ones, p.cel)
			continue
		}
		flush()
		if !p.many {
			p.cel = expr.Cond(p.when, expr.Elements(p.cel), expr.List())
		}
		lists = append(lists, expr.Terms(p.cel)...)
	}
	if flush(); len(lists) == 0 {
		return expr.List()
	}
	return expr.Sum(lists...)
}

// operation is a JSON patch operation; value may be nil.
func operation(op string, path, value expr.Expr) expr.Expr {
	return operationOf(expr.String(op), expr.Entry{Name: "path", Value: path},
		expr.Entry{Name: "value", Value: value})
}

func operationOf(op expr.Expr, fields ...expr.Entry) expr.Expr {
	fields = slices.DeleteFunc(fields, func(f expr.Entry) bool { return f.Value == nil })
	return expr.Object("JSONPatch", append([]expr.Entry{{Name: "op", Value: op}}, fields...)...)
}

// ensure adds an empty map or list if there is none.
func (o *operations) ensure(at place, empty expr.Expr) {
	pointer := at.jsonPointer()
	// else each element would empty it
	if _, constant := expr.StringOf(pointer); o.outer != nil && constant {
		o.outer.ensure(at, empty)
		return
	}
	if at.has == nil || o.has(at) {
		return
	}
	o.make(at)
	o.when(expr.Not(at.has), oneOperation(operation("add", pointer, empty)))
}

// make records that a place exists from now on, and has reports whether it does.
func (o *operations) make(at place) { o.made = append(o.made, at.jsonPointer().String()) }

func (o *operations) has(at place) bool { return slices.Contains(o.made, at.jsonPointer().String()) }

func (o *operations) edits(all []*edit) {
	for _, e := range all {
		o.edit(e)
	}
}

func (o *operations) edit(e *edit) {
	at := e.at.jsonPointer()
	switch {
	case e.unless != nil:
	case e.remove:
		o.when(expr.And(e.at.has, e.only), oneOperation(operation("remove", at, nil)))
	case e.ifAbsent:
		o.when(expr.And(expr.Not(e.at.has), e.when()), oneOperation(operation("add", at, data(e.whole()))))
	case e.fields != nil:
		if e.writes() {
			o.ensure(e.at, expr.Map())
		}
		o.edits(e.fields)
	case e.elements != nil:
		o.groups(e)
	default:
		o.when(e.when(), oneOperation(operation("add", at, data(e.value))))
		if e.nullable() {
			o.edit(&edit{at: e.at, remove: true, only: expr.Not(e.when())})
		}
	}
}

// when is the condition that there is something to write; nil: always.
func (e *edit) when() expr.Expr {
	x, _ := e.value.(expression)
	return x.when
}

func (e *edit) writes() bool {
	if e.fields == nil && e.elements == nil {
		return !e.remove
	}
	for _, f := range e.fields {
		if f.writes() {
			return true
		}
	}
	return slices.ContainsFunc(e.elements, func(g *group) bool { return g.keyed() && !g.remove })
}

// whole is the value that an edit writes if there is none yet.
func (e *edit) whole() any {
	switch {
	case e.fields != nil:
		return wholeOf(e.fields, nil)
	case e.elements != nil:
		var out []any
		for _, g := range e.elements {
			if g.keyed() && !g.remove {
				out = append(out, wholeOf(g.fields, g.keys))
			}
		}
		return out
	}
	return e.value
}

func wholeOf(fields []*edit, keys []keyValue) map[string]any {
	out := map[string]any{}
	for _, k := range keys {
		if k.cel != nil {
			out[k.name] = k.content
		}
	}
	for _, f := range fields {
		if f.remove {
			continue
		}
		content := f.whole()
		switch {
		case content == nil:
		case f.at.key != nil:
			out[computedKey+f.at.key.String()] = keyed{f.at.key, content}
		default:
			out[f.name()] = content
		}
	}
	return out
}

// exists is the condition that a list has an element of the group.
func (g *group) exists(list expr.Expr) expr.Expr {
	return expr.Macro(list, "exists", g.variable, expr.And(g.where...))
}

// groups adds the operations on list elements. Operations on existing indexes come first: removals and
// additions shift them.
func (o *operations) groups(e *edit) {
	list, kept := e.at.elements(), e.at.plain
	var gone []expr.Expr
	for _, g := range e.elements {
		if g.remove {
			kept = expr.Macro(kept, "filter", g.variable, expr.Not(expr.And(g.where...)))
			gone = append(gone, g.exists(list))
			continue
		}
		if loop := g.loop(list); len(loop.parts) > 0 {
			o.list(loop.expr())
		}
	}
	if len(gone) > 0 {
		o.when(expr.Or(gone...), oneOperation(operation("replace", e.at.jsonPointer(), kept)))
	}
	for _, g := range slices.Backward(e.elements) { // each in front of the previous ones
		if g.keyed() && !g.remove {
			o.ensure(e.at, expr.List())
			o.when(expr.Not(g.exists(list)), e.added(g))
		}
	}
}

// loop returns the operations on a group's existing elements.
func (g *group) loop(list expr.Expr) *operations {
	each, loop, fields := &operations{}, &operations{}, g.fields
	if g.keyed() {
		fields = g.there
	}
	each.edits(fields)
	loop.addForEach(list, g, each)
	return loop
}

// added is the operation that adds a named element to an existing list.
func (e *edit) added(g *group) *operations {
	return oneOperation(operation("add", e.at.jsonPointer(expr.String("0")), data(wholeOf(g.fields, g.keys))))
}

func (o *operations) addForEach(list expr.Expr, g *group, each *operations) {
	if len(each.parts) == 0 {
		return
	}
	where, loop, flat := expr.And(g.where...), each.expr(), true
	if only := each.parts[0]; len(each.parts) == 1 && !only.many {
		where, loop, flat = expr.And(where, only.when), only.cel, false
	}
	args := []expr.Expr{expr.Name(g.index), expr.Name(g.variable)}
	if always, _ := expr.BoolOf(where); !always {
		args = append(args, where)
	}
	list = expr.Method(list, "transformList", append(args, loop)...)
	if g.descending {
		list = expr.Method(list, "reverse")
	}
	if flat {
		list = expr.Method(list, "flatten")
	}
	o.list(list)
}
