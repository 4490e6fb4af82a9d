package patching

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// merger writes patches whose conditions hold. Several patches for one list element are merged together, so
// that all are checked on the original element and the last one to set a field wins.
type merger struct {
	clock *limit.Clock
	err   error // the first type conflict between patch and object
	// warnings are deviations from Kyverno 1.19; a trial has none. unlike is set if Kyverno's result is not
	// computed here.
	warnings      []engine.Warning
	trial, unlike bool
	why           *engine.Reasons // may be nil
	// inEngine merges like Kyverno 1.19, with its findings for +() in list elements in found.
	inEngine bool
	found    found
}

// mergeMap merges patches into a map, which may be nil. It returns the given map if nothing changed.
func (m *merger) mergeMap(live map[string]any, patches []*node,
	at *place,
) (merged map[string]any, removed bool) {
	patches, live, removed = m.directives(live, patches, at)
	if removed {
		return nil, true
	}
	fields := m.fieldsToWrite(live, patches, at)
	if !m.steps(1 + len(fields)) {
		return nil, false
	}
	merged, copied := live, false
	for len(fields) > 0 {
		key, n := fields[0].name, 1
		for n < len(fields) && fields[n].name == key {
			n++
		}
		old := live[key]
		value, drop := m.mergeValue(old, fields[:n:n], at.field(key))
		fields = fields[n:]
		switch {
		case drop && old == nil, !drop && diff.Same(old, value):
			continue
		case !copied:
			merged, copied = diff.With(live, key, nil), true
		}
		if merged[key] = value; drop {
			delete(merged, key)
		}
	}
	return merged, false
}

// directives applies $patch: a delete or a replace discards the object's values and earlier patches.
func (m *merger) directives(live map[string]any, patches []*node,
	at *place,
) (rest []*node, base map[string]any, removed bool) {
	if !slices.ContainsFunc(patches, func(p *node) bool { return p.directive != "" }) {
		return patches, live, false
	}
	base = live
	for _, patch := range patches {
		if patch.directive == directiveDelete {
			m.nothingToDelete(live == nil, at)
			rest, base, removed = nil, nil, true
			continue
		}
		if patch.directive != directiveReplace && !removed {
			rest = append(rest, patch)
			continue
		}
		rest, base, removed = nil, m.contentMap(patch, at), false
	}
	return rest, base, removed
}

// fieldsToWrite collects the patches of a map by field, each in patch order.
func (m *merger) fieldsToWrite(live map[string]any, patches []*node, at *place) []*node {
	fields := make([]*node, 0, 4)
	for _, patch := range patches {
		for _, f := range patch.fields {
			if f.anchor == pattern.Add && m.present(f, live) {
				m.alreadyThere(f, live[f.name], at)
				continue
			}
			fields = append(fields, f)
		}
	}
	slices.SortStableFunc(fields, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	return fields
}

// mergeValue merges the patches of one field. An empty map or list changes nothing, and so does dropping a
// missing or null field; but a missing map in which the patch deletes fields becomes an empty one, as in
// kyaml, which takes over the patch's map and then deletes in it.
func (m *merger) mergeValue(live any, values []*node, at *place) (value any, drop bool) {
	if slices.ContainsFunc(values, (*node).isEmpty) {
		m.writesNothing(live, values, at)
		values = slices.DeleteFunc(slices.Clone(values), (*node).isEmpty)
	}
	if len(values) == 0 {
		return live, live == nil
	}
	last := values[len(values)-1].kind
	for i := len(values) - 1; i >= 0; i-- {
		if values[i].kind != last { // earlier values are discarded
			live, values = nil, values[i+1:]
			break
		}
	}
	if k := kindOf(live); last != isNull && k != isNull && k != last {
		m.err = cmp.Or(m.err, kindError(at.String(), last, k))
		return live, false
	}
	switch last {
	case isMap:
		old, _ := live.(map[string]any)
		merged, removed := m.mergeMap(old, values, at)
		if merged == nil && slices.ContainsFunc(values, (*node).deletesFields) {
			merged = map[string]any{}
		}
		return merged, removed || merged == nil
	case isList:
		old, _ := live.([]any)
		return m.mergeList(old, values, at)
	case isNull:
		m.nothingToDelete(live == nil, at)
		return nil, true
	default:
		return m.scalar(values[len(values)-1].value, at), false
	}
}

// steps counts steps, and reports whether there is time left; if not, the result is meaningless.
func (m *merger) steps(n int) bool { return m.clock.Steps(n) == nil }

// scalar returns a scalar to write: labels and annotations become strings.
func (m *merger) scalar(value any, at *place) any {
	if _, isText := value.(string); isText || !at.parent.isLabels() {
		return value
	}
	s, _ := pattern.Text(value)
	m.warn("%s: %s is written as a string, since labels and annotations hold nothing else", at, s)
	return s
}

// content returns a part of a patch that is new to the object: nulls and directives have no effect, and
// conditions have been checked. Here {} and [] have a meaning (`emptyDir: {}`).
func (m *merger) content(patch *node, at *place) any {
	switch patch.kind {
	case isMap:
		return m.contentMap(patch, at)
	case isList:
		return m.contentList(patch.elements, at)
	default:
		return m.scalar(patch.value, at)
	}
}

func (m *merger) contentMap(patch *node, at *place) map[string]any {
	out := make(map[string]any, len(patch.fields))
	for _, f := range patch.fields {
		if f.kind != isNull && !f.isDeletion() {
			out[f.name] = m.content(f, at.field(f.name))
		}
	}
	return out
}

// contentList joins items with the same merge keys, as a second merge would.
func (m *merger) contentList(items []*node, at *place) any {
	if len(items) > 0 && items[0].kind == isMap && len(at.listRule().keys) > 0 {
		merged, _ := m.mergeElements(nil, items, at)
		if list, _ := merged.([]any); len(list) == 0 {
			merged = []any{}
		}
		return merged
	}
	out := make([]any, 0, len(items))
	for i, element := range items {
		if !element.isDeletion() {
			out = append(out, m.content(element, at.element(i)))
		}
	}
	return out
}

// contains reports whether a list holds a value; false if time runs out.
func (m *merger) contains(list []any, v any) bool {
	return m.steps(len(list)) && slices.ContainsFunc(list, func(e any) bool { return diff.Same(e, v) })
}
