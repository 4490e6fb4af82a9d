package impact

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// A place is a path as engine.PathPattern writes it, without the keys of list elements: "spec.containers[*].image".

// isWithin reports whether a place is another one, or below it.
func isWithin(p, q string) bool {
	below, ok := strings.CutPrefix(p, q)
	return ok && (below == "" || below[0] == '.' || below[0] == '[')
}

// meet reports whether one of two places is the other, or holds it.
func meet(p, q string) bool { return isWithin(p, q) || isWithin(q, p) }

// meetsAny reports whether a path meets any of several places.
func meetsAny(all []string, p fieldpath.Path) bool {
	return slices.ContainsFunc(all, func(q string) bool { return meet(engine.PathPattern(p), q) })
}

// fieldsOf are the paths of the changed fields that are chosen, by themselves and by their places.
func fieldsOf(c *engine.Change, chosen func(f *engine.FieldChange, place string) bool) []fieldpath.Path {
	var out []fieldpath.Path
	for i := range c.Fields {
		if f := &c.Fields[i]; chosen(f, engine.PathPattern(f.Path)) {
			out = append(out, f.Path)
		}
	}
	return out
}

// touching are the paths of the changed fields that meet a place.
func touching(c *engine.Change, p string) []fieldpath.Path {
	return fieldsOf(c, func(_ *engine.FieldChange, place string) bool { return meet(place, p) })
}

// within are the paths of the changed fields that are in a place.
func within(c *engine.Change, p string) []fieldpath.Path {
	return fieldsOf(c, func(_ *engine.FieldChange, place string) bool { return isWithin(place, p) })
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
	v, _, _ := unstructured.NestedFieldNoCopy(object, names...) // what is no map has no fields
	return v
}

// at is a value of a type, and the type's zero value where there is none, or one of another type.
func at[T any](object map[string]any, names ...string) T {
	v, _ := valueAt(object, names...).(T)
	return v
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
