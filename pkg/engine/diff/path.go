package diff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Pointer returns the RFC 6901 JSON pointer of a path in an object, and whether the object holds the path:
// for an added field the object after the change, for a removed one the object before it. The last element of
// the path may be absent if it is a field name.
func Pointer(object any, p fieldpath.Path) (string, bool) {
	var b strings.Builder
	for i, e := range p {
		token, next, ok := step(object, e)
		if !ok && (e.FieldName == nil || i < len(p)-1) {
			return "", false
		}
		b.WriteByte('/')
		b.WriteString(jsonpointer.Escape(token))
		object = next
	}
	return b.String(), true
}

// Lookup returns the value at a path of an object, and whether there is one. It finds no list element with an
// ambiguous key.
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

// Replaced returns now, a later state of an object, with a string in place of the value at a path of the
// object. Without such a path, now is returned as it is. Nothing is modified.
func Replaced(object, now any, p fieldpath.Path, s string) any {
	if len(p) == 0 {
		return s
	}
	token, below, ok := step(object, p[0])
	if !ok {
		return now
	}
	switch now := now.(type) {
	case map[string]any:
		return With(now, token, Replaced(below, now[token], p[1:], s))
	case []any:
		i, _ := strconv.Atoi(token) // a token of step
		out := slices.Clone(now)
		out[i] = Replaced(below, now[i], p[1:], s)
		return out
	}
	return now // a string that was put there
}

// step returns the value that an element of a path names in another value.
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

// Index returns the index of the list element that a path element names, or -1. It finds no element with an
// ambiguous key.
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

// indexOf returns the index of the only element that matches, or -1 for none or several.
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

// hasKey reports whether an element has the key. A missing key field was a default of the schema when the
// path was made.
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
