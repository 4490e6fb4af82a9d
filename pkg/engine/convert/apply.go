package convert

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// applyConfiguration is the expression of an ApplyConfiguration that makes the edits.
func applyConfiguration(edits []*edit, root place) string {
	return applyObject(edits, root)
}

func applyObject(edits []*edit, at place) string {
	if at.texts() && len(at.path) > 0 {
		return applyMap(edits)
	}
	fields := make([]string, 0, len(edits))
	for _, e := range edits {
		fields = append(fields, applyField(e, e.name()))
	}
	return at.object() + "{" + strings.Join(fields, ", ") + "}"
}

// name is that of the field that is edited.
func (e *edit) name() string { return e.at.path[len(e.at.path)-1] }

func applyField(e *edit, name string) string {
	if e.elements != nil && e.at.maybe() && !slices.ContainsFunc(e.elements, func(g *group) bool { return len(g.keys) > 0 }) {
		return "?" + name + ": " + e.at.access() + ".optMap(l, " + applyFound(e, e.elements, "l") + ")"
	}
	written := applyValue(e)
	if e.unless != "" {
		return "?" + name + ": " + choose(e.unless, "optional.none()", "optional.of("+e.at.object()+"{})")
	}
	if e.ifAbsent {
		return "?" + name + ": " + choose(condition([]string{negate(e.at.has()), e.when()}), "optional.of("+written+")", "optional.none()")
	}
	if when := e.when(); when != "true" {
		return "?" + name + ": " + choose(when, "optional.of("+written+")", "optional.none()")
	}
	return name + ": " + written
}

func applyValue(e *edit) string {
	switch {
	case e.fields != nil:
		return applyObject(e.fields, e.at)
	case e.elements != nil:
		return applyList(e)
	}
	return typed(e.value.content, e.at)
}

// applyMap is a literal of a map whose keys are no fields.
func applyMap(edits []*edit) string {
	entries := make([]string, 0, len(edits))
	for _, e := range edits {
		last := e.at.steps[len(e.at.steps)-1]
		key := quote(last.name)
		if last.name == "" {
			key = last.expr
		}
		entries = append(entries, applyField(e, key))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

// applyList is an expression that is the list of the elements that are written.
func applyList(e *edit) string {
	var named, found []*group
	for _, g := range e.elements {
		if len(g.keys) > 0 {
			named = append(named, g)
		} else {
			found = append(found, g)
		}
	}
	var lists []string
	if len(named) > 0 {
		elements := make([]string, len(named))
		for i, g := range named {
			elements[i] = applyNamed(e, g)
		}
		lists = append(lists, "["+strings.Join(elements, ", ")+"]")
	}
	if len(found) > 0 {
		lists = append(lists, applyFound(e, found, e.at.or("[]")))
	}
	return strings.Join(lists, " + ")
}

// applyNamed is one element with its keys.
func applyNamed(e *edit, g *group) string {
	fields := make([]string, 0, len(g.keys)+len(g.fields))
	for _, k := range g.keys {
		if k.cel != "" {
			fields = append(fields, k.name+": "+k.cel)
		}
	}
	for _, f := range g.fields {
		fields = append(fields, applyField(f, f.name()))
	}
	return e.at.element("", "").object() + "{" + strings.Join(fields, ", ") + "}"
}

// applyFound maps the elements of a list that are there.
func applyFound(e *edit, groups []*group, list string) string {
	variable := groups[0].variable
	var fields []string
	for _, k := range e.at.listKeys() {
		if k == "protocol" {
			fields = append(fields, "?protocol: "+variable+".?protocol")
			continue
		}
		fields = append(fields, k+": "+variable+"."+k)
	}
	var filter string
	if len(groups) == 1 {
		filter = condition(groups[0].where)
		for _, f := range groups[0].fields {
			fields = append(fields, applyField(f, f.name()))
		}
	} else {
		filter, fields = applyTogether(groups, fields)
	}
	return mapped(list, variable, filter, e.at.element("", "").object()+"{"+strings.Join(fields, ", ")+"}")
}

// applyTogether writes several groups of elements as one, since a list may not have two entries for one element.
func applyTogether(groups []*group, fields []string) (filter string, all []string) {
	var any []string
	for _, g := range groups {
		here := condition(g.where)
		any = append(any, here)
		for _, f := range g.fields {
			written := applyValue(f)
			name := f.name()
			fields = slices.DeleteFunc(fields, func(field string) bool {
				if old, is := strings.CutPrefix(field, "?"+name+": "); is { // the last one wins
					written = "" + written
					fields = append(fields, old)
					return true
				}
				return false
			})
			when := here
			if f.ifAbsent {
				when = condition([]string{here, negate(f.at.has())})
			}
			if when == "true" {
				fields = append(fields, name+": "+written)
				continue
			}
			fields = append(fields, "?"+name+": "+choose(when, "optional.of("+written+")", "optional.none()"))
		}
	}
	if slices.Contains(any, "true") {
		return "true", fields
	}
	slices.Sort(any)
	for i := range any {
		if tokensAtTop(any[i], " ? ") {
			any[i] = "(" + any[i] + ")"
		}
	}
	return strings.Join(slices.Compact(any), " || "), fields
}

// mapped is a list whose elements are filtered and mapped.
func mapped(list, variable, filter, each string) string {
	if filter != "true" {
		list = fmt.Sprintf("%s.filter(%s, %s)", list, variable, filter)
	}
	return fmt.Sprintf("%s.map(%s, %s)", list, variable, each)
}

// typed is a whole value as an ApplyConfiguration has it.
func typed(content any, at place) string {
	switch v := content.(type) {
	case map[string]any:
		entries := make([]string, 0, len(v))
		for _, key := range sortedKeys(v) {
			name := key
			if at.texts() {
				name = quote(key)
			}
			entries = append(entries, name+": "+typed(v[key], at.field(key, true)))
		}
		if at.texts() {
			return "{" + strings.Join(entries, ", ") + "}"
		}
		return at.object() + "{" + strings.Join(entries, ", ") + "}"
	case []any:
		elements := make([]string, len(v))
		for i, element := range v {
			elements[i] = typed(element, at.element("", ""))
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case expression:
		return convertTo(at.scalar(), v)
	}
	if at.scalar() == schema.String || at.texts() {
		return quote(plainText(content))
	}
	return literal(content)
}

// convertTo is an expression of the type that the schema wants.
func convertTo(want schema.Scalar, x expression) string {
	switch {
	case want == schema.String && !x.text:
		return "string(" + x.cel + ")"
	case want == schema.Numeric && x.text:
		return "int(" + x.cel + ")"
	case want == schema.Boolean && x.text:
		return x.cel + ` == "true"`
	}
	return x.cel
}
