package redact

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// What replaces a value: the words of kubectl diff.
const (
	Mask         = engine.HiddenValue
	beforeSuffix = " (before)"
	afterSuffix  = " (after)"
)

// Masker masks what a Secret holds: its data, and older data in an annotation. What rules make of Secrets is left out
// before, as it is in an engine.Change that may be shown. A nil Masker shows everything.
type Masker struct{ _ byte }

// Object masks one object. The result is the given object if it is no Secret.
func (m *Masker) Object(u *unstructured.Unstructured) *unstructured.Unstructured {
	masked, _ := m.Pair(u, nil)
	return masked
}

// Pair masks two states of an object, either of which may be nil. If two masked values
// differ, so do their masks.
func (m *Masker) Pair(from, to *unstructured.Unstructured) (*unstructured.Unstructured, *unstructured.Unstructured) {
	if m == nil || !engine.IsSecret(from) && !engine.IsSecret(to) {
		return from, to
	}
	a, b := maskSecret(content(from), content(to))
	return masked(from, a), masked(to, b)
}

// Value masks the values of a field before and after a change; one that was not there is
// nil. The names are the fields that lead to it, up to the first list element.
func (m *Masker) Value(object *unstructured.Unstructured, names []string, from, to any) (any, any) {
	if m == nil || !engine.IsSecret(object) {
		return from, to
	}
	a, b := maskSecret(wrap(names, from), wrap(names, to))
	return unwrap(names, a), unwrap(names, b)
}

// maskSecret masks two states of a Secret, or of a part of one; nil is a state without it.
func maskSecret(a, b any) (any, any) {
	for _, path := range [][]string{{"data"}, {"stringData"}, {"metadata", "annotations", engine.LastApplied}} {
		a, b = maskAt(path, a, b)
	}
	return a, b
}

// maskAt masks what two states have at a path, or below it.
func maskAt(path []string, a, b any) (any, any) {
	if len(path) == 0 {
		return maskAll(a, b)
	}
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	from, to := maskAt(path[1:], x[path[0]], y[path[0]])
	return replaced(a, path[0], from), replaced(b, path[0], to)
}

// replaced is a map with another value of a field that it has.
func replaced(of any, name string, value any) any {
	fields, _ := of.(map[string]any)
	if known, has := fields[name]; !has || engine.Identical(known, value) {
		return of
	}
	fields = maps.Clone(fields)
	fields[name] = value
	return fields
}

// maskAll masks all values of two states, which keep their names.
func maskAll(a, b any) (any, any) {
	x, areMaps := a.(map[string]any)
	y, are := b.(map[string]any)
	if areMaps = (areMaps || a == nil) && (are || b == nil); !areMaps {
		return maskBoth(a, b)
	}
	for _, name := range union(x, y) {
		from, to := maskBoth(x[name], y[name])
		a, b = replaced(a, name, from), replaced(b, name, to)
	}
	return a, b
}

func maskBoth(a, b any) (any, any) {
	if a != nil && b != nil && !diff.Same(a, b) {
		return Mask + beforeSuffix, Mask + afterSuffix
	}
	return mask(a), mask(b)
}

// union is the names of both.
func union(x, y map[string]any) []string {
	return slices.Concat(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y)))
}

func mask(v any) any {
	if v == nil {
		return nil
	}
	return Mask
}

func content(u *unstructured.Unstructured) any {
	if u == nil {
		return nil
	}
	return u.Object
}

func masked(u *unstructured.Unstructured, v any) *unstructured.Unstructured {
	object, ok := v.(map[string]any)
	if !ok || engine.Identical(u.Object, object) {
		return u
	}
	return &unstructured.Unstructured{Object: object}
}

// wrap nests a value under field names; nil stays nil.
func wrap(names []string, v any) any {
	if v == nil {
		return nil
	}
	for i := len(names) - 1; i >= 0; i-- {
		v = map[string]any{names[i]: v}
	}
	return v
}

func unwrap(names []string, v any) any {
	for _, name := range names {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}
