package diff

import (
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Pointer is the RFC 6901 JSON pointer of a path in an object that holds it, and
// whether the object does: of an added field that is the object after the
// change, of a removed one the object before it. The last element of the path
// may be absent when it is a field name.
func Pointer(object any, p fieldpath.Path) (string, bool) { return PointersIn(object).Of(p) }

// Lookup finds what a path names in an object, and whether the object holds it.
// Of several list elements with one key it finds none.
func Lookup(object any, p fieldpath.Path) (any, bool) {
	for _, e := range p {
		_, next, ok := step(object, e)
		if !ok {
			return nil, false
		}
		object = next
	}
	return object, true
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1") //nolint:gochecknoglobals // an immutable table

// step goes from a value to the one that an element of a path names.
func step(v any, e fieldpath.PathElement) (token string, next any, ok bool) {
	if e.FieldName != nil {
		m, _ := v.(map[string]any)
		next, ok = m[*e.FieldName]
		return *e.FieldName, next, ok
	}
	list, _ := v.([]any)
	i := Index(list, e)
	if i < 0 {
		return "", nil, false
	}
	return strconv.Itoa(i), list[i], true
}

// Index returns the index of the list element that an element of a path names, or
// -1. Of several elements with one key it finds none.
func Index(list []any, e fieldpath.PathElement) int {
	i := -1
	switch {
	case e.Index != nil:
		i = *e.Index
	case e.Key != nil:
		i = indexOf(list, func(item any) bool { return hasKey(item, *e.Key) })
	case e.Value != nil:
		i = indexOf(list, func(item any) bool { return holds(item, *e.Value) })
	}
	if i >= len(list) {
		return -1
	}
	return i
}

// indexOf is the place of the one element that matches, or -1: several are as
// good as none.
func indexOf(list []any, matches func(any) bool) int {
	found := -1
	for i, item := range list {
		if !matches(item) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// hasKey tells whether an element has the key. A key field that the element
// lacks was a default of the schema when the path was made.
func hasKey(item any, key value.FieldList) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	present := false
	for _, f := range key {
		v, ok := m[f.Name]
		if !ok {
			continue
		}
		if !holds(v, f.Value) {
			return false
		}
		present = true
	}
	return present
}

func holds(v any, want value.Value) bool {
	return value.Equals(value.NewValueInterface(v), want)
}
