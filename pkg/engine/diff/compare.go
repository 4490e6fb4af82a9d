package diff

import (
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/openapi"
)

// Compare lists the differences between two objects, in path order. An added or removed subtree is one
// FieldChange. Values are equal when the server reads them alike: numbers by value, quantities by amount, and
// null and the empty list as absent where the type says so. Neither object is modified; the result refers to
// their values.
func Compare(before, after map[string]any, t Type) []engine.FieldChange {
	c := comparisons.Get().(*comparison)
	defer comparisons.Put(c)
	c.fields = c.fields[:0]
	var path [12]fieldpath.PathElement
	c.maps(path[:0], before, after, t)
	return append([]engine.FieldChange(nil), c.fields...) // a list that grows takes twice the room
}

var comparisons = sync.Pool{New: func() any { return &comparison{} }} //nolint:gochecknoglobals // spare room

// Equal reports whether Compare finds no difference between two values.
func Equal(a, b any, t Type) bool {
	var c comparison
	c.values(nil, a, b, t)
	return len(c.fields) == 0
}

type comparison struct{ fields []engine.FieldChange }

// add adds a difference at a path, which the paths of others may overwrite.
func (c *comparison) add(p fieldpath.Path, k engine.ChangeKind, from, to any) {
	own := append(fieldpath.Path(nil), p...)
	c.fields = append(c.fields, engine.FieldChange{Path: own, Kind: k, From: from, To: to})
}

// field and index return p with one more element, in its own memory: sibling paths must not share an array.
func field(p fieldpath.Path, name string) fieldpath.Path {
	return append(slices.Clip(p), fieldpath.PathElement{FieldName: &name})
}

func index(p fieldpath.Path, i int) fieldpath.Path {
	return append(slices.Clip(p), fieldpath.PathElement{Index: &i})
}

func (c *comparison) values(p fieldpath.Path, a, b any, t Type) {
	if Shared(a, b) {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			c.maps(p, x, y, t)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			c.lists(p, x, y, t)
			return
		}
	default:
		if scalarsEqual(a, b, t) {
			return
		}
	}
	c.add(p, engine.Replaced, a, b)
}

func (c *comparison) maps(p fieldpath.Path, a, b map[string]any, t Type) {
	if Shared(a, b) {
		return
	}
	var few [8]string
	names := unlike(few[:0], a, b)
	slices.Sort(names)
	for _, name := range names {
		x, inA := a[name]
		y, inB := b[name]
		of := t.Field(name)
		if (!inA || t.fieldAbsent(name, x)) && (!inB || t.fieldAbsent(name, y)) {
			continue
		}
		if t.EmptyIsAbsent {
			inA, inB = inA && x != nil, inB && y != nil
		}
		if inA && inB && scalarsEqual(x, y, of) {
			continue // a path costs more than this
		}
		q := append(p, fieldpath.FieldNameElement(name))
		switch {
		case !inA:
			c.add(q, engine.Added, nil, y)
		case !inB:
			c.add(q, engine.Removed, x, nil)
		default:
			c.values(q, x, y, of)
		}
	}
}

// unlike appends the keys whose values differ, which are few.
func unlike(out []string, a, b map[string]any) []string {
	onlyB := len(b)
	for k, x := range a {
		y, ok := b[k]
		if ok {
			onlyB--
		}
		if !ok || !Same(x, y) {
			out = append(out, k)
		}
	}
	for k := range b {
		if onlyB == 0 {
			break
		}
		if _, ok := a[k]; !ok {
			out, onlyB = append(out, k), onlyB-1
		}
	}
	return out
}

func scalarsEqual(a, b any, t Type) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	if a == b {
		return true
	}
	x, isNumber := number(a)
	y, also := number(b)
	_, whole := a.(int64)
	// two integers differ beyond 2^53, too
	if _, both := b.(int64); isNumber && also && x == y && !(whole && both) {
		return true
	}
	return t.IsQuantity() && openapi.Quantity(a) == openapi.Quantity(b) || t.Form.Same(a, b)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	}
	return 0, false
}

// Shared reports whether two maps, or two non-empty lists, are the same in memory.
func Shared(a, b any) bool {
	list, _ := a.([]any)
	_, isMap := a.(map[string]any)
	return (isMap || len(list) > 0) && engine.Identical(a, b)
}

// Same reports whether two values have the same content. It skips shared parts, and compares numbers by
// value, whatever their type. Unlike Equal it knows no schema.
func Same(a, b any) bool {
	if Shared(a, b) {
		return true
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if other, ok := y[k]; !ok || !Same(v, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Same)
	}
	return scalarsEqual(a, b, Type{})
}

// With returns a copy of a map with a field set.
func With(m map[string]any, name string, value any) map[string]any {
	if m = maps.Clone(m); m == nil {
		m = map[string]any{}
	}
	m[name] = value
	return m
}

// Without returns a copy of a map without a field.
func Without(m map[string]any, name string) map[string]any {
	m = maps.Clone(m)
	delete(m, name)
	return m
}
