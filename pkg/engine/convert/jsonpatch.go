package convert

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
)

// operations are what a JSON patch does, in order: expressions that are lists of operations.
type operations struct {
	parts []part
	made  []string    // pointers of maps and lists that are there by now
	outer *operations // of the loop around these
}

// part is one operation, perhaps under a condition, or an expression that is a list of them.
type part struct {
	cel  string
	when string // empty for always
	many bool
}

func (o *operations) one(cel string) { o.parts = append(o.parts, part{cel: cel}) }

func (o *operations) list(cel string) { o.parts = append(o.parts, part{cel: cel, many: true}) }

// when adds operations that depend on a condition.
func (o *operations) when(condition string, then *operations) {
	switch {
	case len(then.parts) == 0, condition == "false":
	case condition == "true":
		o.parts = append(o.parts, then.parts...)
	case len(then.parts) == 1 && !then.parts[0].many && then.parts[0].when == "":
		o.parts = append(o.parts, part{cel: then.parts[0].cel, when: condition})
	default:
		o.list(choose(condition, then.String(), "[]"))
	}
}

// String is the expression of the whole list.
func (o *operations) String() string {
	if len(o.parts) == 0 {
		return "[]"
	}
	var lists []string
	for i := 0; i < len(o.parts); i++ {
		if o.parts[i].many || o.parts[i].when != "" {
			cel := o.parts[i].cel
			if !o.parts[i].many {
				cel = choose(o.parts[i].when, "["+cel+"]", "[]")
			}
			if tokensAtTop(cel, " ? ") && len(o.parts) > 1 {
				cel = "(" + cel + ")"
			}
			lists = append(lists, cel)
			continue
		}
		var ones []string
		for ; i < len(o.parts) && !o.parts[i].many && o.parts[i].when == ""; i++ {
			ones = append(ones, o.parts[i].cel)
		}
		i--
		lists = append(lists, "["+strings.Join(ones, ", ")+"]")
	}
	return strings.Join(lists, " + ")
}

func operation(op, path, value string) string {
	if value == "" {
		return fmt.Sprintf(`JSONPatch{op: %q, path: %s}`, op, path)
	}
	return fmt.Sprintf(`JSONPatch{op: %q, path: %s, value: %s}`, op, path, value)
}

// ensure adds an empty map or list where there is none.
func (o *operations) ensure(at place, empty string) {
	if _, err := strconv.Unquote(at.jsonPointer()); o.outer != nil && err == nil { // else it would be emptied for each element
		o.outer.ensure(at, empty)
		return
	}
	pointer := at.jsonPointer()
	if !at.maybe() || slices.Contains(o.made, pointer) {
		return
	}
	o.made = append(o.made, pointer)
	then := &operations{}
	then.one(operation("add", pointer, empty))
	o.when(negate(at.has()), then)
}

// edits adds the operations that make the edits below a place.
func (o *operations) edits(all []*edit) {
	const few = 2 // which are read as well one by one
	written, rest := siblings(all, false)
	if len(written) <= few {
		written, rest = nil, all
	}
	defaults, rest := siblings(rest, true)
	if len(defaults) < few {
		rest = slices.DeleteFunc(slices.Clone(all), func(e *edit) bool { return slices.Contains(written, e) })
		defaults = nil
	}
	o.entries(written, "")
	if len(defaults) > 0 {
		o.entries(defaults, "!(key in "+defaults[0].parent().or("{}")+")")
	}
	for _, e := range rest {
		o.edit(e)
	}
}

// siblings are the edits that write a value to a field of the same map, whatever the object is: only where there is
// none, or always.
func siblings(all []*edit, ifAbsent bool) (found, rest []*edit) {
	for _, e := range all {
		last := e.at.steps[max(0, len(e.at.steps)-1):]
		leaf := e.ifAbsent || e.fields == nil && e.elements == nil && !e.remove && e.unless == ""
		if leaf && e.ifAbsent == ifAbsent && e.when() == "true" && len(last) == 1 && last[0].name != "" {
			found = append(found, e)
			continue
		}
		rest = append(rest, e)
	}
	return found, rest
}

// entries adds an operation for each entry of a map with what siblings write.
func (o *operations) entries(all []*edit, where string) {
	if len(all) == 0 {
		return
	}
	values, key := map[string]any{}, "key"
	for _, e := range all {
		values[e.name()] = e.whole()
		if jsonpointer.Escape(e.name()) != e.name() {
			key = "jsonpatch.escapeKey(key)"
		}
	}
	if where != "" {
		where += ", "
	}
	o.list(fmt.Sprintf("%s.transformList(key, value, %s%s)", data(values), where, operation("add", all[0].parent().jsonPointer(key), "value")))
}

// parent is the place of the map that has the field.
func (e *edit) parent() place {
	out, n := e.at, len(e.at.steps)-1
	out.steps, out.pointer, out.path = out.steps[:n], out.pointer[:len(out.pointer)-1], out.path[:len(out.path)-1]
	return out
}

func (o *operations) edit(e *edit) {
	switch {
	case e.unless != "":
	case e.remove:
		then := &operations{}
		then.one(operation("remove", e.at.jsonPointer(), ""))
		o.when(condition([]string{e.at.has(), cmp.Or(e.only, "true")}), then)
	case e.ifAbsent:
		then := &operations{}
		then.one(operation("add", e.at.jsonPointer(), data(e.whole())))
		o.when(condition([]string{negate(e.at.has()), e.when()}), then)
	case e.fields != nil:
		if e.writes() {
			o.ensure(e.at, "{}")
		}
		o.edits(e.fields)
	case e.elements != nil:
		o.groups(e)
	default:
		then := &operations{}
		then.one(operation("add", e.at.jsonPointer(), data(e.value.content)))
		o.when(e.when(), then)
		if e.nullable() {
			o.edit(&edit{at: e.at, remove: true, only: negate(e.when())})
		}
	}
}

// when is the condition that there is something to write.
func (e *edit) when() string {
	if x, ok := e.value.content.(expression); ok && x.when != "" {
		return x.when
	}
	return "true"
}

// writes reports whether something is added below a map.
func (e *edit) writes() bool {
	if e.fields == nil && e.elements == nil {
		return !e.remove
	}
	for _, f := range e.fields {
		if f.writes() {
			return true
		}
	}
	return slices.ContainsFunc(e.elements, func(g *group) bool { return len(g.keys) > 0 && !g.remove })
}

// whole is what an edit writes where nothing is yet.
func (e *edit) whole() any {
	switch {
	case e.fields != nil:
		return wholeOf(e.fields, nil)
	case e.elements != nil:
		var out []any
		for _, g := range e.elements {
			if len(g.keys) > 0 && !g.remove {
				out = append(out, wholeOf(g.fields, g.keys))
			}
		}
		return out
	}
	return e.value.content
}

func wholeOf(fields []*edit, keys []keyValue) map[string]any {
	out := map[string]any{}
	for _, k := range keys {
		if k.cel != "" {
			out[k.name] = k.content
		}
	}
	for _, f := range fields {
		if f.remove {
			continue
		}
		last := f.at.steps[len(f.at.steps)-1]
		name := last.name
		if name == "" {
			name = computedKey + last.expr
		}
		if content := f.whole(); content != nil {
			out[name] = content
		}
	}
	return out
}

// computedKey marks a key of a value that is an expression.
const computedKey = "\x00"

// groups adds the operations for elements of a list. Those that have the indexes of what is there come first: what is removed and
// added changes the indexes.
func (o *operations) groups(e *edit) {
	if len(e.elements) == 1 && len(e.elements[0].keys) > 0 && !e.elements[0].remove {
		o.named(e, e.elements[0])
		return
	}
	list, kept := e.at.or("[]"), e.at.plain()
	var gone []string
	for _, g := range e.elements {
		where := condition(g.where)
		if g.remove {
			kept += fmt.Sprintf(".filter(%s, %s)", g.variable, negate(where))
			gone = append(gone, fmt.Sprintf("%s.exists(%s, %s)", list, g.variable, where))
			continue
		}
		each, loop := &operations{}, &operations{}
		each.edits(g.fields)
		loop.each(list, g, where, each)
		if len(loop.parts) > 0 {
			o.list(g.known(loop.String()))
		}
	}
	if len(gone) > 0 {
		then := &operations{}
		then.one(operation("replace", e.at.jsonPointer(), kept))
		o.when(strings.Join(gone, " || "), then)
	}
	for _, g := range e.elements {
		if len(g.keys) > 0 && !g.remove {
			o.ensure(e.at, "[]")
			o.when(negate(fmt.Sprintf("%s.exists(%s, %s)", list, g.variable, condition(g.where))), e.added(g))
		}
	}
}

// named adds the operations for the one element of a list that has a name.
func (o *operations) named(e *edit, g *group) {
	where, each, add := condition(g.where), &operations{}, e.added(g)
	each.edits(g.fields)
	exists := fmt.Sprintf("%s.exists(%s, %s)", e.at.or("[]"), g.variable, where)
	o.ensure(e.at, "[]")
	if len(each.parts) == 0 {
		o.when(negate(exists), add)
		return
	}
	loop := &operations{}
	loop.each(e.at.plain(), g, where, each)
	o.list(choose(exists, g.known(loop.String()), add.String()))
}

// added is the operation that adds an element with a name to a list that is there.
func (e *edit) added(g *group) *operations {
	out := &operations{}
	out.one(operation("add", e.at.jsonPointer(quote("0")), data(wholeOf(g.fields, g.keys))))
	return out
}

// known is an expression in a loop over the elements, in which the one that is named is the variable.
func (g *group) known(cel string) string {
	if g.named == "" {
		return cel
	}
	cel = strings.ReplaceAll(cel, g.named+".?", g.variable+".?")
	field := regexp.MustCompile(`(^|[^.\w])` + g.variable + `\.\?(\w+)\.(hasValue|value)\(\)`)
	return field.ReplaceAllStringFunc(cel, func(text string) string {
		m := field.FindStringSubmatch(text)
		if m[3] == "value" {
			return m[1] + g.variable + "." + m[2]
		}
		return m[1] + "has(" + g.variable + "." + m[2] + ")"
	})
}

// each adds the operations on every element for which a condition holds.
func (o *operations) each(list string, g *group, where string, each *operations) {
	if len(each.parts) == 0 {
		return
	}
	loop, tail := each.String(), ".flatten()"
	if only := each.parts[0]; len(each.parts) == 1 && !only.many {
		loop, tail = only.cel, ""
		if only.when != "" {
			where = condition([]string{where, only.when})
		}
	}
	if g.descending {
		tail = ".reverse()" + tail
	}
	filter := ""
	if where != "true" {
		filter = where + ", "
	}
	o.list(fmt.Sprintf("%s.transformList(%s, %s, %s%s)%s", list, g.index, g.variable, filter, loop, tail))
}
