package undo

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// set gives a path of an object a content, and reports whether it could. Missing maps on
// the way are created, missing list elements are not.
func set(object map[string]any, p fieldpath.Path, c content) bool {
	_, ok := put(object, p, c)
	return ok
}

// put returns a value with a content at a path. Maps are modified, lists may be new.
func put(v any, p fieldpath.Path, c content) (any, bool) {
	switch {
	case p[0].FieldName != nil:
		return putField(v, p, c)
	case p[0].Index != nil:
		return v, false
	}
	list, isList := v.([]any)
	if !isList && v != nil {
		return v, false
	}
	i := diff.Index(list, p[0])
	switch {
	case len(p) > 1 && i < 0:
		return v, false
	case len(p) > 1:
		element, ok := put(list[i], p[1:], c)
		list[i] = element
		return list, ok
	case c.there && i < 0:
		return append(list, runtime.DeepCopyJSONValue(c.value)), true
	case c.there:
		list[i] = runtime.DeepCopyJSONValue(c.value)
	case i >= 0:
		return slices.Delete(list, i, i+1), true
	}
	return list, true
}

func putField(v any, p fieldpath.Path, c content) (any, bool) {
	fields, isMap := v.(map[string]any)
	if !isMap && v != nil {
		return v, false
	}
	name := *p[0].FieldName
	below, exists := fields[name]
	switch {
	case !exists && !c.there:
		return v, true // there is nothing to take away
	case len(p) == 1 && !c.there:
		delete(fields, name)
		return fields, true
	case len(p) == 1:
		below = runtime.DeepCopyJSONValue(c.value)
	default:
		var ok bool
		if below, ok = put(below, p[1:], c); !ok {
			return v, false
		}
	}
	if fields == nil {
		fields = map[string]any{}
	}
	fields[name] = below
	return fields, true
}

// unitsOf returns the fields of a change by what is put back as one: a value, an
// element of a list by its key, its place in the list (Moved), or a list whose
// elements have no keys, whole.
func unitsOf(p diff.Partial) []engine.FieldChange {
	var out []engine.FieldChange
	for _, u := range p.Units() {
		if n := slices.IndexFunc(u.Path, func(e fieldpath.PathElement) bool { return e.Index != nil }); n >= 0 {
			u.Path, u.Kind = u.Path[:n], engine.Replaced
		}
		if last := len(out) - 1; last >= 0 && out[last].Path.Equals(u.Path) && out[last].Kind == u.Kind {
			out[last].Withheld = out[last].Withheld || u.Withheld
			continue
		}
		out = append(out, u)
	}
	return out
}

// splitElement splits the path of a list element that comes, goes or moves into
// that of the list and the element. It returns false for any other path.
func splitElement(p fieldpath.Path) (list fieldpath.Path, element fieldpath.PathElement, ok bool) {
	last := len(p) - 1
	return p[:last], p[last], p[last].FieldName == nil
}

// content is what is at a path.
type content struct {
	value any
	there bool
}

func at[M ~map[string]any](object M, p fieldpath.Path) content {
	v, ok := diff.Lookup(map[string]any(object), p)
	return content{value: v, there: ok}
}

// same compares two contents. To a server, null is as good as absent.
func (c content) same(other content) bool {
	return diff.Same(c.value, other.value) && (c.there == other.there || c.value == nil)
}
