package diff

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// cut reduces two states of an object to the content at the paths of fields.
func cut(before, after *unstructured.Unstructured, fields []engine.FieldChange) Partial {
	kept := fieldpath.NewSet()
	for _, f := range fields {
		kept.Insert(shortened(f.Path, before.Object, after.Object))
	}
	return Partial{Before: partOf(before.Object, kept), After: partOf(after.Object, kept), Fields: fields}
}

// shortened returns a path up to the first list that must be kept whole: without keys, or with other elements
// or places in one state than in the other.
func shortened(p fieldpath.Path, before, after any) fieldpath.Path {
	for i, e := range p {
		if e.Index != nil || e.Value != nil || e.Key != nil && !sameKeys(before, after, *e.Key) {
			return p[:i]
		}
		_, before, _ = step(before, e)
		_, after, _ = step(after, e)
	}
	return p
}

// sameKeys reports whether two lists, if both exist, have the same keys.
func sameKeys(before, after any, key value.FieldList) bool {
	a, isList := before.([]any)
	b, isListToo := after.([]any)
	return !isList || !isListToo ||
		slices.EqualFunc(a, b, func(x, y any) bool { return Same(stub(x, key), stub(y, key)) })
}

// stub returns the fields that name an element of a list.
func stub(element any, key value.FieldList) map[string]any {
	from, _ := element.(map[string]any)
	out := make(map[string]any, len(key))
	for _, f := range key {
		if v, ok := from[f.Name]; ok {
			out[f.Name] = v
		}
	}
	return out
}

// partOf returns the part of an object in a set.
func partOf(object map[string]any, kept *fieldpath.Set) Part {
	out, _ := keep(object, kept).(map[string]any)
	return out
}

func keep(v any, kept *fieldpath.Set) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, below := range v {
			if below, ok := keepAt(below, kept, fieldpath.FieldNameElement(name)); ok {
				out[name] = below
			}
		}
		return out
	case []any:
		return keepElements(v, kept)
	}
	return v
}

// keepAt returns the part in a set of the value at an element of a path.
func keepAt(v any, kept *fieldpath.Set, e fieldpath.PathElement) (any, bool) {
	if kept.Members.Has(e) {
		return v, true
	}
	below, ok := kept.Children.Get(e)
	if !ok {
		return nil, false
	}
	return keep(v, below), true
}

// keepElements keeps all elements of a list, but only the names of elements outside of the set.
func keepElements(list []any, kept *fieldpath.Set) []any {
	elements := slices.AppendSeq(slices.Collect(kept.Members.All()), kept.Children.All())
	var key value.FieldList
	if len(elements) > 0 && elements[0].Key != nil {
		key = *elements[0].Key
	}
	out := make([]any, len(list))
	for i := range list {
		out[i] = stub(list[i], key)
	}
	for _, e := range elements {
		i := Index(list, e)
		if i < 0 {
			continue
		}
		part, _ := keepAt(list[i], kept, e)
		if fields, ok := part.(map[string]any); ok {
			fields = maps.Clone(fields)
			maps.Copy(fields, stub(list[i], key))
			out[i] = fields
		}
	}
	return out
}
