package undo

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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
