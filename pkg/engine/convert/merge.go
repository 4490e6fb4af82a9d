package convert

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/patching"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

type merge struct {
	scope *scope
	lists []*patching.Lists // by kind
	// guards are conditions of the whole patch.
	guards []expr.Expr
	used   map[string]bool // element variables in scope
	// loop is the enclosing foreach, or nil. looped is set if the patch names the loop's own elements.
	loop   *loop
	looped bool
}

// fields lowers a map of a patch. Conditions on the map itself are added to guards.
func (m *merge) fields(patch map[string]any, at place, guards *[]expr.Expr) []*edit {
	edits := []*edit{}
	m.scope.within(at, "map")
	for _, key := range nameFirst(patch) {
		anchor, name := pattern.ParseKey(key)
		below := m.fieldOf(at, name)
		switch anchor {
		case pattern.Condition, pattern.Global:
			into := guards
			if !hasAdd(patch[key]) {
				c := m.matches(below, patch[key])
				*into = append(*into, c)
				continue
			}
			*into = append(*into, below.has)
		case pattern.Equality, pattern.Negation, pattern.Existence:
			panic(refuse(below, "the anchor %s has no meaning in a mutation", anchor))
		case pattern.None:
			if key == "$patch" {
				panic(refuse(at, "$patch on a map"))
			}
		}
		e := m.edit(patch[key], below, anchor == pattern.Add, guards)
		if e != nil {
			edits = append(edits, e)
		}
	}
	return edits
}

// fieldOf is the place of a field whose name may be computed.
func (m *merge) fieldOf(at place, name string) place {
	if !strings.Contains(name, "{{") {
		return at.field(name, m.scope.sure(at, name))
	}
	var key expression
	if r := refusalOf(func() { key = m.scope.notEmpty(name) }); r != nil { // a server rejects an empty key
		panic(refuse(at, "the key %s: %v", name, r))
	}
	return at.computed(key.cel)
}

// edit lowers the value of a field; nil if it writes nothing.
func (m *merge) edit(patch any, at place, ifAbsent bool, guards *[]expr.Expr) *edit {
	e := &edit{at: at, ifAbsent: ifAbsent}
	if ifAbsent {
		if e.value = m.content(patch, at); e.value == nil {
			return nil
		}
		return e
	}
	switch v := patch.(type) {
	case nil:
		e.remove = true
	case map[string]any:
		switch directive := v["$patch"]; {
		case directive == "delete" && len(v) == 1:
			e.remove = true
			return e
		case directive == "replace":
			e.value = m.content(withoutKey(v, "$patch"), at)
			return e
		case directive == "merge":
			v = withoutKey(v, "$patch")
		}
		if e.fields = m.fields(v, at, guards); len(e.fields) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		m.scope.within(at, "list")
		return m.list(v, e, guards)
	default:
		m.scope.within(at, "scalar")
		e.value = m.content(patch, at)
		x, computed := e.value.(expression)
		if atom, ok := at.shape(); ok && atom.Scalar == nil && (!computed || x.isText()) {
			panic(refuse(at, "a single value, where the object has a list or a map; write that without quotes"))
		}
	}
	return e
}

func withoutKey(m map[string]any, key string) map[string]any {
	out := maps.Clone(m)
	delete(out, key)
	return out
}

// content lowers a whole value: its nulls have nothing to delete.
func (m *merge) content(patch any, at place) any {
	switch v := patch.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range sortedKeys(v) {
			anchor, name := pattern.ParseKey(key)
			if anchor != pattern.None && anchor != pattern.Add {
				panic(refuse(at.field(name, false), "the anchor %s below what is written as a whole", anchor))
			}
			if name == "$patch" {
				panic(refuse(at, "$patch below what is written as a whole"))
			}
			if v[key] == nil {
				continue
			}
			below := m.fieldOf(at, name)
			value := m.content(v[key], below)
			if below.key != nil {
				name, value = computedKey+below.key.String(), keyed{below.key, value}
			}
			out[name] = value
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, item := range v {
			content := m.content(item, at.element("", nil))
			if x, _ := content.(expression); x.when != nil { // a server rejects null in a list
				m.scope.need(x.when)
			}
			out = append(out, content)
		}
		return out
	case string:
		if strings.Contains(v, "{{") || strings.Contains(v, "$(") {
			x := atPlace(at, func() expression { return m.scope.value(v, at) })
			if at.parentIsLabels() || at.scalar() == schema.String {
				x.cel = atPlace(at, x.asText).cel
			}
			return x
		}
		return v
	}
	if at.parentIsLabels() {
		return plainText(patch)
	}
	return patch
}

func (p place) parentIsLabels() bool {
	p.path = p.path[:max(0, len(p.path)-1)]
	return p.isLabels()
}

func (m *merge) list(list []any, e *edit, guards *[]expr.Expr) *edit {
	keys, merges := m.lists[0].Keys(e.at.path...)
	for i, other := range m.lists {
		theirs, merge := other.Keys(e.at.path...)
		if _, known := e.at.types[i].Atom(); known && (merge != merges || !slices.Equal(keys, theirs)) {
			panic(refuse(e.at, "the kinds of the rule merge this list in different ways: write a rule for each"))
		}
	}
	var elements []map[string]any
	directive := ""
	for _, item := range list {
		element, isMap := item.(map[string]any)
		if text, is := element["$patch"].(string); is && len(element) == 1 {
			directive = text
			continue
		}
		if isMap {
			elements = append(elements, element)
		}
	}
	switch {
	case directive == "delete":
		e.remove = true
		return e
	case directive == "replace", len(elements) == 0 && !merges,
		!merges && !slices.ContainsFunc(elements, func(e map[string]any) bool { return hasAnchor(e) }):
		e.value = m.content(slices.DeleteFunc(slices.Clone(list), func(item any) bool {
			element, _ := item.(map[string]any)
			return element["$patch"] != nil
		}), e.at)
		return e
	case len(elements) == 0:
		return m.set(list, e)
	case len(elements) != len(list) && directive == "":
		panic(refuse(e.at, "a list of maps and scalars"))
	}
	for _, element := range elements {
		if g := m.element(element, e.at, keys, guards); g != nil {
			e.elements = append(e.elements, g)
		}
	}
	if len(e.elements) == 0 {
		return nil
	}
	return e
}

// set lowers a scalar list that merges, such as finalizers.
func (m *merge) set(list []any, e *edit) *edit {
	content := m.content(list, e.at)
	live := e.at.elements()
	items, _ := content.([]any)
	isNew := expr.Not(expr.Binary("in", expr.Name("x"), live))
	e.value = expression{cel: expr.Sum(expr.Macro(data(items), "filter", "x", isNew), live)}
	return e
}

// element lowers a list element to edits of the elements that it stands for.
func (m *merge) element(patch map[string]any, list place, keys []string, guards *[]expr.Expr) *group {
	if g, rest := m.ofLoop(patch, list); g != nil {
		if g.fields = m.fields(rest, list.element(g.variable, indexText(g.index)), &g.where); len(g.fields) == 0 {
			return nil
		}
		m.looped = true
		return g
	}
	variable, index := m.variables(list)
	defer func() { delete(m.used, variable) }()
	at := list.element(variable, indexText(index))
	g := &group{variable: variable, index: index}
	if hasAnchor(patch) {
		return m.anchored(patch, g, list, keys, guards)
	}
	if len(keys) == 0 {
		panic(refuse(at, "an element without anchors in a list without keys, beside elements with anchors"))
	}
	if patch["$patch"] == "delete" {
		g.remove = true
	}
	rest := map[string]any{}
	for name, v := range patch {
		if name != "$patch" && !slices.Contains(keys, name) {
			rest[name] = v
		}
	}
	m.keys(patch, g, at, keys)
	if slices.Contains(keys, "protocol") && patch["protocol"] == nil {
		m.anyProtocol(patch, g, list, keys)
	}
	if g.remove {
		g.keys = nil
		return g
	}
	// A condition on the element must also hold if it may be missing.
	named := at.optional(expr.OptionalIndex(expr.Macro(list.elements(), "filter", variable,
		expr.And(g.where...)), expr.Int(0)))
	var own []expr.Expr
	g.fields, g.there = m.fields(rest, named, &own), m.fields(rest, at, &own)
	if len(own) > 0 {
		panic(refuse(at, "a condition in an element without one of its own"))
	}
	there := g.exists(list.elements())
	for _, name := range sortedKeys(rest) {
		if empty, is := rest[name].(map[string]any); is && len(empty) == 0 {
			g.fields = append(g.fields, &edit{at: named.field(name, false), unless: there, value: map[string]any{}})
		}
	}
	return g
}

// keys adds the keys in a pattern to a group.
func (m *merge) keys(patch map[string]any, g *group, at place, keys []string) {
	for _, k := range keys {
		if patch[k] == nil {
			if k == "protocol" {
				g.keys = append(g.keys, keyValue{name: k}) // the schema has a default for it
				continue
			}
			panic(refuse(at.field(k, true), "an element of the list without its key %s names none", k))
		}
		content := m.content(patch[k], at.field(k, true))
		g.keys = append(g.keys, keyValue{k, typed(content, at.field(k, true)), content})
		if k == "protocol" {
			g.where = append(g.where, expr.Equal(at.field(k, false).or(expr.String("TCP")), data(content)))
			continue
		}
		g.where = append(g.where,
			expr.Equal(at.field(k, m.scope.sure(at, k)).or(expr.String("")), typed(content, at.field(k, true))))
	}
}

// anyProtocol makes an element without a protocol match TCP or, if there is no TCP element, any protocol.
func (m *merge) anyProtocol(patch map[string]any, g *group, list place, keys []string) {
	variable, _ := m.variables(list)
	defer func() { delete(m.used, variable) }()
	other := &group{}
	m.keys(patch, other, list.element(variable, expr.String("")), keys)
	tcp := expr.Equal(list.element(variable, nil).field("protocol", false).or(expr.String("TCP")),
		expr.String("TCP"))
	found := func(where ...expr.Expr) expr.Expr {
		return expr.Macro(list.elements(), "filter", variable, expr.And(where...))
	}
	first := expr.Index(expr.Sum(found(append(other.where, tcp)...), found(other.where...)), expr.Int(0))
	g.where = append(g.where, expr.Equal(expr.Name(g.variable), first))
}

// ofLoop returns the group of the loop's elements, if the patch refers to one by name, and the rest of the
// patch.
func (m *merge) ofLoop(patch map[string]any, list place) (*group, map[string]any) {
	if m.loop == nil || m.loop.list.root == "" || !expr.Same(m.loop.list.jsonPointer(), list.jsonPointer()) {
		return nil, nil
	}
	for _, key := range []string{"name", "(name)"} {
		template, _ := patch[key].(string)
		if strings.Join(strings.Fields(template), "") == "{{element.name}}" {
			g := &group{variable: m.loop.variable, index: m.loop.index, where: slices.Clone(m.loop.where)}
			return g, withoutKey(patch, key)
		}
	}
	return nil, nil
}

// anchored lowers an element with anchors: it stands for existing elements.
func (m *merge) anchored(patch map[string]any, g *group, list place, keys []string,
	guards *[]expr.Expr,
) *group {
	at := list.element(g.variable, indexText(g.index))
	rest := map[string]any{}
	if len(keys) == 0 {
		keys = []string{"name"}
	}
	var global []expr.Expr
	conditions := false
	for _, key := range sortedKeys(patch) {
		anchor, _ := pattern.ParseKey(key)
		conditions = conditions || anchor == pattern.Condition || anchor == pattern.Global
	}
	for _, key := range sortedKeys(patch) {
		anchor, name := pattern.ParseKey(key)
		field := at.field(name, m.scope.sure(at, name))
		switch {
		case anchor == pattern.Global:
			c := m.matches(field, patch[key])
			global = append(global, c)
		case anchor == pattern.None && slices.Contains(keys, name) && (name == "name" || !conditions) &&
			patch["("+name+")"] == nil:
			content := m.content(patch[key], field)
			g.where = append(g.where, expr.Equal(field.or(expr.String("")), typed(content, at.field(name, true))))
		case name == "name" && anchor == pattern.None && patch["(name)"] != nil:
		default:
			rest[key] = patch[key]
		}
	}
	g.where = append(g.where, global...)
	g.fields = m.fields(rest, at, &g.where)
	if pattern.Has(patch, pattern.Global) {
		*guards = append(*guards, g.exists(list.elements()))
	}
	if len(g.fields) == 0 {
		return nil
	}
	return g
}

// variables returns unused names for a list element and its index.
func (m *merge) variables(list place) (element, index string) { return m.scope.variables(list, m.used) }

func hasAdd(v any) bool {
	m, _ := v.(map[string]any)
	for key := range m {
		if anchor, _ := pattern.ParseKey(key); anchor == pattern.Add {
			return true
		}
	}
	return false
}

func hasAnchor(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			if anchor, _ := pattern.ParseKey(key); anchor != pattern.None || hasAnchor(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasAnchor)
	}
	return false
}
