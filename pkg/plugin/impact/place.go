package impact

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// element stands in a place for any element of a list.
const element = "[]"

// place is a path without the keys of list elements: spec, containers, [], image.
type place []string

// placeOf is the place of a path.
func placeOf(p fieldpath.Path) place {
	out := make(place, len(p))
	for i := range p {
		out[i] = element
		if p[i].FieldName != nil {
			out[i] = *p[i].FieldName
		}
	}
	return out
}

// placeAt reads a place as tables write it: "spec.containers.[].image".
func placeAt(text string) place { return strings.Split(text, ".") }

// within reports whether the place is another one, or below it.
func (p place) within(q place) bool { return len(p) >= len(q) && slices.Equal(p[:len(q)], q) }

// meets reports whether one of the places is the other, or holds it.
func (p place) meets(q place) bool { return p.within(q) || q.within(p) }

// meet reports whether any of several places meets p.
func meet(all []place, p place) bool { return slices.ContainsFunc(all, p.meets) }

// holding returns an object that has nothing but a value at the place, below which there is a map: an element
// stands for the only one of its list.
func (p place) holding(fields map[string]any) map[string]any {
	var value any = fields
	for _, name := range slices.Backward(p) {
		if name == element {
			value = []any{value}
		} else {
			value = map[string]any{name: value}
		}
	}
	return value.(map[string]any)
}

// touching are the paths of the changed fields that meet a place.
func touching(c *engine.Change, p place) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		if placeOf(c.Fields[i].Path).meets(p) {
			out = append(out, c.Fields[i].Path)
		}
	}
	return out
}

// within are the paths of the changed fields that are in a place.
func within(c *engine.Change, p place) []fieldpath.Path {
	return slices.DeleteFunc(touching(c, p), func(changed fieldpath.Path) bool { return !placeOf(changed).within(p) })
}

// patterns lists paths for a text about several objects: "spec.containers[*].env[*]".
func patterns(paths []fieldpath.Path) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = engine.PathPattern(p)
	}
	slices.Sort(out)
	return engine.Few(slices.Compact(out))
}

// names lists paths for a text: "spec.replicas, spec.paused and 2 more".
func names(paths []fieldpath.Path) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = engine.PathString(p)
	}
	return engine.Few(out)
}

// valueAt walks down maps; nil where there is nothing.
func valueAt(object map[string]any, names ...string) any {
	var v any = object
	for _, name := range names {
		below, _ := v.(map[string]any)
		v = below[name]
	}
	return v
}

// textOf is a value that is a text, and empty for any other.
func textOf(v any) string {
	s, _ := v.(string)
	return s
}

// boolOf is a value that is true or false, and false for any other.
func boolOf(v any) bool {
	b, _ := v.(bool)
	return b
}

// numberOf is a value that is a count; fallback stands where there is none.
func numberOf(v any, fallback int64) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return fallback
}
