package convert

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
)

func applyObject(edits []*edit, at place) expr.Expr {
	entries := make([]expr.Entry, len(edits))
	for i, e := range edits {
		entries[i] = applyField(e)
	}
	if !at.texts() || len(at.path) == 0 {
		return expr.Object(at.object(), entries...)
	}
	for i, e := range edits { // their keys are not fields
		entries[i].Key = expr.String(e.name())
		if e.at.key != nil {
			entries[i].Key = e.at.key
		}
	}
	return expr.Object("", entries...)
}

// variablesLast is a note for patches that add environment variables: $(NAME) refers only to preceding ones.
const variablesLast = "a missing variable is added at the end of env, where the old rule puts it first: variables before it cannot refer to it as $(NAME)"

func addVariables(edits []*edit) bool {
	return slices.ContainsFunc(edits, func(e *edit) bool {
		return addVariables(e.fields) || slices.ContainsFunc(e.elements,
			func(g *group) bool { return g.keyed() && e.name() == "env" || addVariables(g.fields) })
	})
}

func (e *edit) name() string { return e.at.path[len(e.at.path)-1] }

// only is an optional that has the value if a condition holds.
func only(when, value expr.Expr) expr.Expr {
	return expr.Cond(when, expr.Call("optional.of", value), expr.Call("optional.none"))
}

func applyField(e *edit) expr.Entry {
	optional := func(value expr.Expr) expr.Entry {
		return expr.Entry{Name: e.name(), Value: value, Optional: true}
	}
	if e.elements != nil && e.at.has != nil && !slices.ContainsFunc(e.elements, (*group).keyed) {
		return optional(expr.Macro(e.at.access(), "optMap", "l", applyFound(e, e.elements, expr.Name("l"))))
	}
	written, when := applyValue(e), e.when()
	switch {
	case e.unless != nil:
		return optional(only(expr.Not(e.unless), expr.Object(e.at.object())))
	case e.ifAbsent:
		return optional(only(expr.And(expr.Not(e.at.has), when), written))
	case when != nil:
		return optional(only(when, written))
	}
	return expr.Entry{Name: e.name(), Value: written}
}

func applyValue(e *edit) expr.Expr {
	switch {
	case e.fields != nil:
		return applyObject(e.fields, e.at)
	case e.elements != nil:
		return applyList(e)
	}
	return typed(e.value, e.at)
}

func applyList(e *edit) expr.Expr {
	var named []expr.Expr
	var found []*group
	for _, g := range e.elements {
		if g.keyed() {
			named = append(named, applyNamed(e, g))
		} else {
			found = append(found, g)
		}
	}
	var lists []expr.Expr
	if len(named) > 0 {
		lists = append(lists, expr.Elements(named...))
	}
	if len(found) > 0 {
		lists = append(lists, applyFound(e, found, e.at.elements()))
	}
	return expr.Sum(lists...)
}

func applyNamed(e *edit, g *group) expr.Expr {
	var fields []expr.Entry
	for _, k := range g.keys {
		if k.cel != nil {
			fields = append(fields, expr.Entry{Name: k.name, Value: k.cel})
		}
	}
	for _, f := range g.fields {
		fields = append(fields, applyField(f))
	}
	return expr.Object(e.at.element("", nil).object(), fields...)
}

// applyFound maps the existing elements of a list.
func applyFound(e *edit, groups []*group, list expr.Expr) expr.Expr {
	variable := groups[0].variable
	var fields []expr.Entry
	for _, k := range e.at.listKeys() {
		key := expr.Entry{Name: k, Value: expr.Field(expr.Name(variable), k)}
		if k == "protocol" {
			key.Value, key.Optional = expr.Marked(key.Value), true
		}
		fields = append(fields, key)
	}
	filter := expr.And(groups[0].where...)
	if len(groups) == 1 {
		for _, f := range groups[0].fields {
			fields = append(fields, applyField(f))
		}
	} else {
		filter, fields = applyTogether(groups, fields)
	}
	if always, _ := expr.BoolOf(filter); !always {
		list = expr.Macro(list, "filter", variable, filter)
	}
	return expr.Macro(list, "map", variable, expr.Object(e.at.element("", nil).object(), fields...))
}

// applyTogether joins groups of elements: an ApplyConfiguration may not list an element twice.
func applyTogether(groups []*group, fields []expr.Entry) (filter expr.Expr, all []expr.Entry) {
	var any []expr.Expr
	for _, g := range groups {
		here := expr.And(g.where...)
		any = append(any, here)
		for _, f := range g.fields {
			// the last value wins
			fields = slices.DeleteFunc(fields,
				func(field expr.Entry) bool { return field.Optional && field.Name == f.name() })
			when := here
			if f.ifAbsent {
				when = expr.And(here, expr.Not(f.at.has))
			}
			field := expr.Entry{Name: f.name(), Value: applyValue(f)}
			if always, _ := expr.BoolOf(when); !always {
				field.Value, field.Optional = only(when, field.Value), true
			}
			fields = append(fields, field)
		}
	}
	slices.SortFunc(any, expr.Compare)
	return expr.Or(any...), fields
}

// typed is a whole value in an ApplyConfiguration.
func typed(content any, at place) expr.Expr {
	switch v := content.(type) {
	case map[string]any:
		var entries []expr.Entry
		for _, name := range sortedKeys(v) {
			key, value := entryOf(name, v[name])
			entry := expr.Entry{Name: name, Value: typed(value, at.field(name, true))}
			if at.texts() {
				entry.Key = key
			}
			entries = append(entries, entry)
		}
		if at.texts() {
			return expr.Object("", entries...)
		}
		return expr.Object(at.object(), entries...)
	case expression:
		return convertTo(at.scalar(), v)
	}
	if at.scalar() == schema.String || at.texts() {
		return expr.String(plainText(content))
	}
	return data(content)
}

func convertTo(want schema.Scalar, x expression) expr.Expr {
	switch {
	case want == schema.String && !x.isText():
		return x.asText().cel
	case want == schema.Numeric && x.isText():
		return expr.Call("int", x.cel)
	case want == schema.Boolean && x.isText():
		return expr.Equal(x.cel, expr.String("true"))
	}
	return x.cel
}
